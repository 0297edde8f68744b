"""The form of `marks.json`: the mark of each item of a vault, and its hashes at the export. Pure.

With it, `reindex` distinguishes what a person changed on the pages from what was changed in the chat since.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import orjson

from app.vault.items import PARTS, Digests, Exported, PageError, kind_of
from app.vault.wording import MARK

MARKS = "marks.json"
VERSION = 4
MAX_BYTES = 64 * 1024 * 1024
"""A chat of a million messages has 15 MB of marks."""

_MARK = re.compile(MARK.removeprefix(r"\^"))
_AGAIN = "export the vault again"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What `marks.json` contains.

    Attributes:
        line: The line that the pages show; empty for the current one.
        files: The names of all files of the vault.
        digests: The hashes of the items by part of the pages, and then by mark (`items.py` explains both).

    """

    line: str
    files: Sequence[str]
    digests: Exported


def write_manifest(manifest: Manifest) -> str:
    """Return the content of the file, with one item per line."""
    digests = {
        page_part: {mark: " ".join(hashes) for mark, hashes in marks.items()}
        for page_part, marks in manifest.digests.items()
    }
    content = {"version": VERSION, "line": manifest.line, "files": manifest.files, "places": digests}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def read_manifest(content: bytes) -> Manifest:
    """Return what the file contains. Raises PageError."""
    try:
        given = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise PageError(f"{MARKS}: line {error.lineno}: is not JSON; {_AGAIN}.") from None
    if not isinstance(given, dict) or given.get("version") != VERSION:
        raise PageError(f"{MARKS}: does not have the form that this release writes; {_AGAIN}.")
    line, files, digests = given.get("line"), given.get("files"), given.get("places")
    if not isinstance(line, str) or not _are_texts(files) or not isinstance(digests, dict):
        raise PageError(f"{MARKS}: does not have the form that an export writes; {_AGAIN}.")
    return Manifest(line, files, {page_part: _read_marks(marks) for page_part, marks in digests.items()})


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _read_marks(marks: Any) -> Mapping[str, Digests]:
    if not isinstance(marks, dict) or not all(
        _MARK.fullmatch(mark) and isinstance(digests, str) and len(digests.split()) == PARTS.get(kind_of(mark), 1)
        for mark, digests in marks.items()
    ):
        raise PageError(f"{MARKS}: does not have the form that an export writes; {_AGAIN}.")
    return {mark: tuple(digests.split()) for mark, digests in marks.items()}
