"""Loads the folder with which a deployment replaces prompts, once at startup.

A file `<name>.md` contains the system text, a line that is exactly `=== user ===`, and the user text. An invalid file
prevents the startup: for example, a prompt without the placeholder for the messages would fill the memory with
inventions, without any visible error.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from app.kit.settings import PREFIX, SettingsError
from app.kit.tokens import count_tokens
from app.summarising.prompts import Prompt

PromptSet = Mapping[str, Prompt]
"""Prompts by name."""

SEPARATOR = "=== user ==="
MAX_BYTES = 65_536


def load_prompts(builtin: Iterable[Prompt], folder: Path | None, *, context_tokens: int | None = None) -> PromptSet:
    """Return the prompts of `builtin`, each replaced by its file in `folder` if there is one.

    The version of a replaced prompt is `<name>/custom-` and the first 8 hexadecimal digits of the file's SHA-256. If
    `context_tokens`, the size of the model's context, is given, the prompt's own text may take at most three quarters
    of it. Hidden files and files that do not end in `.md` are ignored. Raises SettingsError with one line that names
    the file.
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


def _read(path: Path, book: PromptSet) -> Prompt:
    """Return the prompt in `path`. Raises OSError, and ValueError if the file is invalid."""
    builtin = book.get(path.stem)
    if builtin is None:
        raise ValueError(f"there is no prompt of this name; the prompts are {', '.join(sorted(book))}")
    if not path.is_file():  # reading a pipe would block the startup
        raise ValueError("is not a regular file")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES:,} bytes")
    system, user = _split(content)
    version = f"{builtin.name}/custom-{hashlib.sha256(content).hexdigest()[:8]}"
    return replace(builtin, version=version, system=system, user=user)


def _check_room(prompt: Prompt, context_tokens: int) -> None:
    """Raise ValueError if the prompt's own text takes more than three quarters of the model's context."""
    tokens = count_tokens(prompt.system) + count_tokens(prompt.user)
    if tokens * 4 > context_tokens * 3:
        raise ValueError(
            f"takes {tokens:,} of the {context_tokens:,} tokens of {PREFIX}LLM_CONTEXT_TOKENS; "
            "it may take at most three quarters of them"
        )


def _split(content: bytes) -> tuple[str, str]:
    """Return the system and the user text, without surrounding white space."""
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
    """Return an error of one line, even if the file's name contains line breaks."""
    said = f"{path}: {reason}"
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in said)
    return SettingsError(f"{PREFIX}PROMPTS_DIR: {shown}")
