"""Finds the items in a model's answer: JSON in most of the forms that models write, or else lines. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain

from app.summarising.answer_text import says_nothing

Fields = Mapping[str, object]
"""An item as it was written; keys in lower case."""

CONTENT_KEYS = ("memory", "content", "sentence", "text", "statement", "description", "summary", "note")
SOURCE_KEYS = ("from", "messages", "sources", "source", "message", "message_numbers", "message_ids", "numbers", "seqs")

_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")
_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")
_MOST_TAIL_CHARS = 160
_MARK = re.compile(r"^(?:[-*•+]|\d{1,2}[.)]|【[^【】]{0,20}】:?)\s*")
_TAG = re.compile(r"^[(\[](?P<tag>[^()\[\]]{1,60})[)\]]:?\s*")
_SOURCES = re.compile(
    r"[\[(](?:from|messages?|sources?|msgs?)?[:# ]{0,3}(?P<numbers>\d[\d,;&# –-]{0,60})[\])]\W{0,3}$", re.I
)
_FACT = re.compile(r"^(?:fact\b[:.]? ?)?(?P<key>\w[\w ]{0,40}?) ?[:=] ?(?P<value>\S.*)$", re.I)


def find_items(text: str) -> list[Fields] | None:
    """Return the items in `text`, or None if it has none; [] if it is JSON without content, such as `{"facts": []}`."""
    objects = list(_find_objects(text))
    if objects:
        items = list(chain.from_iterable(map(_walk, objects)))
        return items if items or not any(map(_has_content, objects)) else None
    if text.strip() == "[]":
        return []
    return [item for line in text.split("\n") if (item := _read_line(line))] or None


def _find_objects(text: str) -> Iterator[object]:
    """Yield the outermost objects that have a closing brace, decoded.

    In place of an outermost object that is not valid JSON, yield the innermost objects in it that are valid.
    """
    for start, end in _find_closed(text):
        value = _decode(text[start:end])
        if value is not None:
            yield value
            continue
        for inner in _FLAT_OBJECT.finditer(text, start, end):
            value = _decode(inner[0])
            if value is not None:
                yield value


def _find_closed(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of the outermost objects that have a closing brace.

    A line break ends a string, because the closing `"` may be missing.
    """
    closed: list[tuple[int, int]] = []
    opened: list[int] = []
    is_string = is_escaped = False
    for at, char in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif char == "\\":
            is_escaped = is_string
        elif char == '"':
            is_string = not is_string
        elif char == "\n":
            is_string = False
        elif is_string:
            continue
        elif char == "{":
            opened.append(at)
        elif char == "}" and opened:
            start = opened.pop()
            while closed and closed[-1][0] > start:
                closed.pop()
            closed.append((start, at + 1))
    return closed


def _decode(written: str) -> object:
    for candidate in (written, _TRAILING_COMMA.sub("", written)):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _walk(value: object) -> Iterator[Fields]:
    """Yield the items in decoded JSON, at most `_MOST_LEVELS` levels deep."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        deeper: list[object] = []
        for one in level:
            if isinstance(one, list):
                deeper += one
            elif isinstance(one, dict):
                fields = _flatten(one)
                if _is_item(fields):
                    yield fields
                else:
                    deeper += one.values()
        level = deeper


_MOST_LEVELS = 6


def _flatten(value: Mapping[object, object]) -> Fields:
    """Return the fields with keys in lower case; those of a nested `fact` or `memory` object replace the object."""
    fields = {str(key).lower(): field for key, field in value.items()}
    for name in ("fact", "memory"):
        inner = fields.get(name)
        if isinstance(inner, dict):
            del fields[name]
            fields |= {"kind": name} | {str(key).lower(): field for key, field in inner.items()}
    return fields


def _is_item(fields: Fields) -> bool:
    """Whether an object is an item: it has a text, or both a key and a value.

    An object with a `speaker` is no item: the model has repeated a message of the prompt.
    """
    if "speaker" in fields:
        return False
    has_text = any(isinstance(fields.get(key), str) for key in (*CONTENT_KEYS, "fact"))
    return has_text or ("key" in fields and "value" in fields)


def _has_content(value: object) -> bool:
    """Whether a decoded object has content: a field that is neither empty nor a text such as "nothing to note"."""
    if isinstance(value, dict):
        return any(
            field not in (None, [], {}, "") and not (isinstance(field, str) and says_nothing(field))
            for field in value.values()
        )
    return True


def _read_line(line: str) -> Fields | None:
    """Return the item of a line such as `- (goal, 0.7) Mira plans to move. [3, 4]`.

    Return None if the line does not end with the numbers of messages.
    """
    text = _MARK.sub("", " ".join(line.replace("**", "").split()), count=1)
    tail = max(0, len(text) - _MOST_TAIL_CHARS)
    found = _SOURCES.search(text, tail)
    if found is None:
        return None
    fields: dict[str, object] = {"from": found["numbers"]}
    text = text[: found.start()].strip()
    tag = _TAG.match(text)
    if tag:
        text = text[tag.end() :]
        named, _, rest = tag["tag"].partition(",")
        fields |= {"category": named, "importance": rest.strip() or None}
    is_fact = text.lower().startswith("fact") or (tag is not None and tag["tag"].lower().startswith("fact"))
    fact = _FACT.match(text) if is_fact else None
    return fields | ({"key": fact["key"], "value": fact["value"]} if fact else {"memory": text})
