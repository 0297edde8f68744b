"""Parses a model's answer to where a scene ends. Pure.

The caller checks whether a break may be on that message. An ambiguous answer is unusable, so the model is asked again.
"""

import json
import re
from collections.abc import Iterator

from app.summarising.reading import UnusableAnswer, spoken, without_controls

MAX_REASON_CHARS = 300

_MOST_CHARS = 20_000
_MOST_BRACES = 200
_MAX_SEQ = 2**63 - 1
_NO_BREAK = {"", "null", "none", "nil", "no"}
_WRITTEN = re.compile(
    r"break[_ -]?at[\"'*`]{0,3}\s?[:：=]\s?[\"'*`]{0,3}(\d{1,19}(?![\d.])|null\b|none\b)", re.I
)  # also in invalid JSON: single quotes, an extra comma, an object that is cut off
_REASON = re.compile(r"reason[\"'*`]{0,3}\s?[:：=]\s?[\"'*`]{0,3}([^\n\"}]{1,300})", re.I)


def parse_scene_break(answer: str) -> tuple[int | None, str]:
    """Return the `seq` on which a scene ends, or None, and the reason in one line, or "". Raises UnusableAnswer."""
    heard = spoken(answer)[:_MOST_CHARS]
    found = list(_find_objects(heard)) or _find_written(heard)
    if not found:
        raise UnusableAnswer("the answer does not say where a scene ends")
    if len({seq for seq, _ in found}) > 1:
        raise UnusableAnswer("the answer names several breaks")
    seq, reason = found[0]
    return seq, " ".join(without_controls(reason).split())[:MAX_REASON_CHARS].rstrip()


def _find_objects(text: str) -> Iterator[tuple[int | None, str]]:
    """Yield the break and the reason from each JSON object in `text` that has the key of a break."""
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{")
    for _ in range(_MOST_BRACES):
        if at < 0:
            return
        end = at + 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = None
        fields = {re.sub(r"[\W_]", "", key).lower(): inner for key, inner in (value or {}).items()}
        if "breakat" in fields:
            reason = fields.get("reason")
            yield _read_seq(fields["breakat"]), reason if isinstance(reason, str) else ""
        at = text.find("{", end)


def _find_written(text: str) -> list[tuple[int | None, str]]:
    reason = _REASON.search(text)
    told = reason[1].strip(" '*`,") if reason else ""
    bare = text.strip(" \n\t`*.\"'")
    written = [found[1] for found in _WRITTEN.finditer(text)]
    if not written and (bare.casefold() in {"null", "none"} or re.fullmatch(r"[0-9]{1,19}", bare)):
        written = [bare]
    return [(_read_seq(value), told) for value in written]


def _read_seq(value: object) -> int | None:
    if isinstance(value, str):
        value = value.strip().lstrip("#")
        value = None if value.casefold() in _NO_BREAK else int(value) if re.fullmatch(r"[0-9]{1,19}", value) else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_SEQ):
        return value
    raise UnusableAnswer("the answer names a break that is no number of a message")
