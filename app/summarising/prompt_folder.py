"""The folder from which a deployment replaces prompts, read once at the start.

A file `<name>.md` holds the system text, a line that is exactly `=== user ===`, and the user text. A wrong file
stops the start: a prompt that lacks its messages would fill memory with inventions, and nobody would see why.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from app.kit.settings import PREFIX, SettingsError
from app.kit.tokens import count_tokens
from app.summarising.prompts import Prompt

PromptBook = Mapping[str, Prompt]
"""Prompts by name."""

SEPARATOR = "=== user ==="
MAX_BYTES = 65_536


def load_prompts(builtin: Iterable[Prompt], folder: Path | None, *, context_tokens: int | None = None) -> PromptBook:
    """All of `builtin`, those replaced that have a file in `folder`.

    A replacing prompt's version is `<name>/custom-` with the first 8 hexadecimal digits of the file's sha-256. With
    `context_tokens`, what the model takes, one that leaves less than a quarter of it for what is filled in is wrong.
    Files that don't end in `.md` are left alone. Raises SettingsError with one line that names the file.
    """
    book = {prompt.name: prompt for prompt in builtin}
    for path in _list_files(folder) if folder else ():
        try:
            book[path.stem] = _read(path, book)
            if context_tokens is not None:
                _check_room(book[path.stem], context_tokens)
        except OSError as error:
            raise _refusal(path, f"cannot be read ({error.strerror})") from None
        except ValueError as error:
            raise _refusal(path, str(error)) from None
    return book


def _list_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".md" and not path.name.startswith("."))
    except OSError as error:
        raise _refusal(folder, f"cannot be read ({error.strerror})") from None


def _read(path: Path, book: PromptBook) -> Prompt:
    """The prompt in `path`. Raises OSError, and ValueError that says what is wrong."""
    builtin = book.get(path.stem)
    if builtin is None:
        raise ValueError(f"there is no such prompt; there are {', '.join(sorted(book))}")
    if not path.is_file():  # a pipe would keep the start waiting
        raise ValueError("is no file")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES:,} bytes")
    system, user = _split(content)
    version = f"{builtin.name}/custom-{hashlib.sha256(content).hexdigest()[:8]}"
    return replace(builtin, version=version, system=system, user=user)


def _check_room(prompt: Prompt, context_tokens: int) -> None:
    """Raise ValueError for a prompt whose own words take more than three quarters of what the model takes."""
    tokens = count_tokens(prompt.system) + count_tokens(prompt.user)
    if tokens * 4 > context_tokens * 3:
        raise ValueError(f"takes {tokens:,} of the {context_tokens:,} tokens of {PREFIX}LLM_CONTEXT_TOKENS")


def _split(content: bytes) -> tuple[str, str]:
    """System and user text, without blank lines around them."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    lines = text.split("\n")
    if lines.count(SEPARATOR) != 1:
        raise ValueError(f"needs one line that is exactly {SEPARATOR}, and has {lines.count(SEPARATOR)}")
    at = lines.index(SEPARATOR)
    return "\n".join(lines[:at]).strip(), "\n".join(lines[at + 1 :]).strip()


def _refusal(path: Path, reason: str) -> SettingsError:
    """One line, whatever a name holds."""
    said = f"{path}: {reason}"
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in said)
    return SettingsError(f"{PREFIX}PROMPTS_DIR: {shown}")
