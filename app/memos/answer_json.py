"""Converts JSON in a model's answer to labelled lines. Pure."""

import json
import re
from collections.abc import Mapping
from itertools import chain

from app.memos.answer_lines import INNER_LABEL, find_category
from app.memos.highlights import Category
from app.summarising.answer_text import without_controls

_JSON_START = re.compile(r"^[ \t]*[\[{]", re.M)
_WHOLE_VALUE = re.compile(r'\}|"(?=,)')
_ENDS_TRIED = 16
"""How many ends of values are tried in JSON that was cut off, from the last one back."""

_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")
_BETWEEN_OBJECTS = re.compile(r"\}\s*\n\s*\{")
_TEXT_KEYS = ("text", "highlight", "content", "sentence", "description", "memory", "summary", "fact")
_CATEGORY_KEYS = ("category", "type", "tag", "kind")
_HIGHLIGHTS_KEY = re.compile(r"(?:highlights?|memos?|memories|facts|items|results?|answer)(?:[ _#-]?\d+)?|\d+")


def json_as_lines(text: str) -> str:
    """Return the JSON in `text` as labelled lines, or `text` itself if no JSON in it holds highlights.

    If the JSON states that there are no highlights, "NONE" is returned. If a label precedes the JSON, `text` is
    returned.
    """
    start = _JSON_START.search(text)
    if start is None or INNER_LABEL.search(text, 0, start.start()):
        return text
    end = max(text.rfind("]"), text.rfind("}")) + 1
    found = text[start.start() : end] or "no JSON"  # an empty string would be mended to "[]"
    mended = f"[{_BETWEEN_OBJECTS.sub('},{', _TRAILING_COMMA.sub('', found))}]"
    for candidate in (found, mended):
        try:
            sentences = _find_sentences(json.loads(candidate, strict=False))
        except (ValueError, RecursionError):
            continue
        if sentences is not None:
            return "\n".join(f"【Highlight 1】: {sentence}" for sentence in sentences) or "NONE"
    return text


def close_json(text: str) -> str | None:
    """Return the cut-off JSON in `text` up to its last whole value, with the missing brackets added.

    Returns None if `text` has no JSON, or has a label before the JSON. Returns "" if the JSON has no whole value.
    """
    start = _JSON_START.search(text)
    if start is None or INNER_LABEL.search(text, 0, start.start()):
        return None
    begun = text[start.start() :]
    ends = [match.end() for match in _WHOLE_VALUE.finditer(begun)]
    for end in reversed(ends[-_ENDS_TRIED:]):
        for closing in ("", "]", "}", "]}", "}]", "}]}"):
            closed = f"{begun[:end]}{closing}"
            try:
                json.loads(closed, strict=False)
            except (ValueError, RecursionError):
                continue
            return closed
    return ""


def _find_sentences(value: object, category: Category | None = None) -> list[str] | None:
    """Return the sentences in decoded JSON with their tags; [] if it states that there are none; None if neither."""
    if value is None or value == []:
        return []
    if isinstance(value, str):
        return [_tagged(value, category)]
    found = [_find_sentences(part, named) for part, named in _list_parts(value, category)]
    known = [sentences for sentences in found if sentences is not None]
    return list(chain.from_iterable(known)) if known else None


def _list_parts(value: object, category: Category | None) -> list[tuple[object, Category | None]]:
    """Return the parts of `value` that may hold sentences, each with its category; `category` is that of `value`."""
    if isinstance(value, list):
        return [(item, category) for item in value]
    if not isinstance(value, dict):
        return []
    fields = {str(key).lower(): field for key, field in value.items()}
    category = _category_of(fields) or category
    text = next((text for key in _TEXT_KEYS if isinstance(text := fields.get(key), str)), None)
    if text is not None:
        return [(text, category)]
    named = ((key, find_category(key), field) for key, field in fields.items())
    return [(field, own or category) for key, own, field in named if own or _HIGHLIGHTS_KEY.fullmatch(key)]


def _category_of(fields: Mapping[str, object]) -> Category | None:
    """Return the first category that the category fields name, or None if none of them names one."""
    named = (find_category(str(fields[key])) for key in _CATEGORY_KEYS if key in fields)
    return next((category for category in named if category), None)


def _tagged(sentence: str, category: Category | None) -> str:
    """Return `sentence` on one line, prefixed with its category as a tag."""
    folded = " ".join(without_controls(sentence).split())
    return f"({category}) {folded}" if category else folded
