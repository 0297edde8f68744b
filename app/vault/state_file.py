"""The form of `state.json`: one JSON document with one row of a table on each line. Pure.

    {"format": "memobook-vault", "version": 1, "tables": {
    "chats": [
    {"line_id": "…", …}
    ],
    "messages": [
    {"seq": 1, …},
    {"seq": 2, …}
    ]
    }}

So a file of any size is written and read row by row, and a tool such as `diff` shows which rows of two files differ.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

VERSION = 1
"""The version that is written, and the newest that is read."""

MAX_LINE_BYTES = 32 * 1024 * 1024
"""The longest row; a message of 100,000 characters has at most 600 kB."""

MAX_EXPONENT = 324
"""The largest exponent of a number, without its sign: as large as that of a float.

PostgreSQL writes numbers with all their digits: 1e-16000, which it accepts, has 16,000 of them in each answer.
"""

_EXPONENT = re.compile(rb"\d[eE][+-]?\d{3}")
_HEAD = re.compile(rb'\{"format": "memobook-vault", "version": (\d{1,9}), "tables": \{')
_TABLE = re.compile(rb'"([a-z_]{1,63})": \[')


class StateError(ValueError):
    """The file is not a valid `state.json`; the message is one line with the line number and the problem."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        table: The name of the table.
        number: The number of its line.
        written: The row as JSON.
        fields: The fields of the row.

    """

    table: str
    number: int
    written: bytes
    fields: dict[str, Any]


def write_head() -> str:
    """Return the first line."""
    return f'{{"format": "memobook-vault", "version": {VERSION}, "tables": {{\n'


def write_table(name: str, *, is_first: bool) -> str:
    """Return the text that begins a table, and ends the table before it unless `is_first`."""
    return f'"{name}": [' if is_first else f'\n],\n"{name}": ['


def write_row(row: str, *, is_first: bool) -> str:
    """Return the text that adds a row to the open table; `row` is a JSON object without line breaks."""
    return f"\n{row}" if is_first else f",\n{row}"


def write_end() -> str:
    """Return the end of the last table and of the document."""
    return "\n]\n}}\n"


def read_rows(lines: Iterator[bytes]) -> Iterator[Row]:
    """Yield the rows of a file, given its lines. Raises StateError for a line that an export does not write.

    Commas and carriage returns at the ends of lines are not checked.
    """
    number, table, is_open, seen = 1, "", False, set[str]()
    _check_head(next(lines, b""))
    for number, line in enumerate(lines, start=2):
        bare = line.rstrip(b"\r\n")
        if bare.startswith(b"{") and is_open:
            written = bare.removesuffix(b",")
            yield Row(table, number, written, _parse(number, written))
        elif bare in (b"]", b"],") and is_open:
            is_open = False
        elif bare == b"}}" and not is_open:
            if next(lines, None) is not None:
                raise StateError(number + 1, "comes after the end of the document")
            return
        elif (begun := _TABLE.fullmatch(bare)) and not is_open:
            table, is_open = begun[1].decode(), True
            if table in seen:
                raise StateError(number, f"the table {table!r} comes twice")
            seen.add(table)
        else:
            raise StateError(number, "is not a line that an export writes")
    raise StateError(number, "the file ends before the end of the document")


def _check_head(line: bytes) -> None:
    head = _HEAD.fullmatch(line.rstrip(b"\r\n"))
    if head is None:
        raise StateError(1, "is not the first line of a vault")
    if not 1 <= int(head[1]) <= VERSION:
        raise StateError(1, f"the vault has version {int(head[1])}; this release reads version {VERSION}")


def _parse(number: int, written: bytes) -> dict[str, Any]:
    if len(written) >= MAX_LINE_BYTES:
        raise StateError(number, f"is longer than {MAX_LINE_BYTES:,} bytes")
    try:
        fields = orjson.loads(written)
    except orjson.JSONDecodeError as error:
        raise StateError(number, f"not JSON at column {error.colno}: {error.msg}") from None
    if not isinstance(fields, dict):
        raise StateError(number, "must be a JSON object")
    try:
        # As deep as in the answers of the API: orjson parses 1,024 levels of nesting, but serialises only 254.
        orjson.dumps([[[fields]]])
    except TypeError:
        raise StateError(number, "must not be nested so deep") from None
    if _EXPONENT.search(written):
        try:
            # `int` refuses more than 4,300 digits, and integers have no exponent.
            json.loads(written, parse_float=_check_exponent, parse_int=len)
        except ValueError:
            raise StateError(
                number, f"the exponent of a number must be from -{MAX_EXPONENT} to {MAX_EXPONENT}"
            ) from None
    return fields


def _check_exponent(written: str) -> None:
    exponent = written.lower().partition("e")[2].lstrip("+-0")
    if len(exponent) > len(str(MAX_EXPONENT)) or int(exponent or 0) > MAX_EXPONENT:
        raise ValueError(written)
