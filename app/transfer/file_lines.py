"""Reads the lines of a file of JSON objects, one per line, in bounded memory. Pure."""

import json
import re
from collections.abc import Iterator
from typing import BinaryIO, Final

import orjson

from app.transfer.transcript import Line, TranscriptError

MAX_LINE_BYTES: Final = 8 * 1024 * 1024
"""The maximum length of a line, in bytes.

A longer line is refused, also one that the service itself exported for a message with many long swipes.
"""

MAX_LINES: Final = 200_000
"""The maximum number of lines of a file."""

_UTF_8 = b"\xef\xbb\xbf"
_OTHER_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_MANY_DIGITS = re.compile(rb"\d{19}")  # a shorter integer fits in 64 bits
_MOST_DIGITS: Final = 309  # a longer integer is infinity as a float
_SHOWN_DIGITS: Final = 25
_DEEPEST: Final = 200
"""The deepest nesting of a line. orjson reads 1,024 levels and writes 254."""


def read_file(file: BinaryIO) -> Iterator[Line]:
    """Yield the JSON objects of a file from its beginning, without blank lines. Raises TranscriptError.

    The file must be UTF-8; a byte order mark of UTF-8 is ignored. Only a line feed ends a line, because JSON strings
    may contain other line separators, such as U+2028, unescaped. An integer of more than 64 bits is refused if it would
    come out of an export as another number.
    """
    file.seek(0)
    for number in range(1, MAX_LINES + 2):
        written = file.readline(MAX_LINE_BYTES + 1)
        if not written:
            return
        if number == 1:
            _refuse_other_encodings(written)
            written = written.removeprefix(_UTF_8)
        if len(written) > MAX_LINE_BYTES:
            raise TranscriptError(number, f"must be at most {MAX_LINE_BYTES} bytes long")
        if number > MAX_LINES:
            raise TranscriptError(number, f"the file must have at most {MAX_LINES} lines")
        if written.strip():
            yield Line(number, _parse(number, written))


def _refuse_other_encodings(start: bytes) -> None:
    for mark, name in _OTHER_MARKS.items():
        if start.startswith(mark):
            raise TranscriptError(1, f"must be UTF-8; the file is {name}")
    if b"\x00" in start[:4]:
        raise TranscriptError(1, "must be UTF-8; the file is UTF-16 or UTF-32, or not text")


def _parse(number: int, written: bytes) -> dict[str, object]:
    try:
        written.decode()
    except UnicodeDecodeError as error:
        raise TranscriptError(number, f"must be UTF-8; byte {error.start + 1} of the line is not") from None
    try:
        fields = orjson.loads(written)
    except orjson.JSONDecodeError as error:
        raise TranscriptError(number, f"not JSON at column {error.colno}: {error.msg}") from None
    if not isinstance(fields, dict):
        raise TranscriptError(number, "must be a JSON object")
    if b"\\u0000" in written.replace(b"\\\\", b""):  # after an escaped backslash, `u0000` is plain text
        raise TranscriptError(number, "must not contain NUL characters")
    if _is_deep(fields):
        raise TranscriptError(number, f"must not be nested deeper than {_DEEPEST} levels")
    if _MANY_DIGITS.search(written) and (long := _find_long_integer(written)):
        raise TranscriptError(number, f"must not contain integers of more than 64 bits, such as {long}")
    return fields


class _LongIntegerError(Exception):
    """Ends the reading of a line at an integer that would come out of an export as another number."""


def _find_long_integer(written: bytes) -> str | None:
    """Return the beginning of the first integer that orjson would turn into another number, or None.

    An integer that does not fit in 64 bits, with or without a sign, becomes a float. A number that was written as a
    float, such as 1e25, can come back as an integer from JavaScript or PostgreSQL; such a number does not change.
    """

    def check(digits: str) -> int:
        if len(digits) > _MOST_DIGITS:
            raise _LongIntegerError(digits[:_SHOWN_DIGITS] + "…")
        if not -(2**63) <= int(digits) < 2**64 and not _is_kept_by_float(digits):
            raise _LongIntegerError(digits[:_SHOWN_DIGITS] + ("…" if len(digits) > _SHOWN_DIGITS else ""))
        return 0

    try:
        json.loads(written, parse_int=check)
    except _LongIntegerError as error:
        return str(error)
    return None


def _is_kept_by_float(digits: str) -> bool:
    """Return whether the shortest text of a float with this value has the same significant digits, as for 1e25."""
    mantissa = repr(float(digits)).partition("e")[0].replace(".", "")
    return mantissa.rstrip("0") == digits.rstrip("0")


def _is_deep(fields: object) -> bool:
    """Return whether a value is nested deeper than `_DEEPEST` levels."""
    level = [fields]
    for _ in range(_DEEPEST):
        level = [inner for one in level if isinstance(one, dict | list) for inner in _inner(one)]
        if not level:
            return False
    return True


def _inner(value: dict[str, object] | list[object]) -> list[object]:
    found = value.values() if isinstance(value, dict) else value
    return [one for one in found if isinstance(one, dict | list)]
