"""Parses a model's answer into facts and memories. Pure.

The prompt asks for one JSON object a line. Cheap models answer with arrays, fences, lists and chatter, with words for
the importance, or with an importance from 1 to 10. All of these forms are read. But an item that names none of the
messages is dropped. Its messages must be known, because a fact or memory is hidden when they change.
"""

import re
from collections.abc import Iterator, Sequence

from app.consolidation.answer_items import CONTENT_KEYS, SOURCE_KEYS, Fields, find_items
from app.consolidation.learnt import (
    MAX_CONTENT_CHARS,
    MAX_TAG_CHARS,
    MAX_TAGS,
    MAX_VALUE_CHARS,
    Learnt,
    shorten,
)
from app.facts.keys import normalise_key
from app.memories.memory import DEFAULT_IMPORTANCE, Category
from app.summarising.answer_text import (
    FENCE,
    UnusableAnswer,
    first_turn,
    refuses,
    says_nothing,
    says_only_nothing,
    spoken,
    without_controls,
)
from app.summarising.judging.judge import Profile

MAX_ITEMS = 12

_MOST_SOURCES = 20
_MOST_SOURCES_CHARS = 100
_SOURCE_WORDS = frozenset({"message", "messages", "msg", "number", "numbers", "no", "nos", "and", "to"})
_WORD = re.compile(r"[^\W\d_]+")
_RANGE = re.compile(r"(\d{1,6})(?:\s?[-–]\s?#?(\d{1,6}))?")
_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,6})?")
_OUT_OF = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s?(?:/|out of)\s?(\d{1,3})")
_IMPORTANCE_WORDS = (
    (re.compile(r"very high|critical|essential|crucial|vital", re.I), 0.9),
    (re.compile(r"very low|trivial|negligible", re.I), 0.1),
    (re.compile(r"high|important|major", re.I), 0.8),
    (re.compile(r"low|minor", re.I), 0.3),
    (re.compile(r"medium|moderate|normal|mid", re.I), 0.5),
)
_CATEGORY_WORDS: tuple[tuple[Category, re.Pattern[str]], ...] = (
    ("preference", re.compile(r"prefer|like|taste|habit", re.I)),
    ("relationship", re.compile(r"relation|family|friend|social|pet", re.I)),
    ("technical", re.compile(r"tech|tool|software|project", re.I)),
    ("goal", re.compile(r"goal|plan|promise|task|intent|commitment", re.I)),
    ("personal", re.compile(r"personal|identity|biograph|profile|health|work|job", re.I)),
    ("context", re.compile(r"context|situation|state|background", re.I)),
)
_PLACEHOLDER = re.compile(r"<[^<>]*>|…|\.\.\.")
_TAG_ENDS = re.compile(r"[,;]")


def parse_learnt(answer: str, seqs: Sequence[int]) -> list[Learnt]:
    """Return the facts and memories in `answer`, at most twelve, or [] if it states that there is nothing to learn.

    `seqs` are the seqs of the messages that the prompt numbered from 1. Items with the same words are merged into one
    that has the sources of all of them. Raises UnusableAnswer if the model refuses, if the answer cannot be read, or if
    no item names one of the messages.
    """
    text = _clean(answer)
    items = find_items(text)
    if items is None:
        if refuses(text):
            raise UnusableAnswer("the model refuses", "declined")
        if says_only_nothing(text) or _is_remark_about_nothing(text):
            return []
        raise UnusableAnswer("the answer has no item that names its messages" if text else "the answer is empty")
    return _read_items(items, seqs)


def parse_cut_off(answer: str, seqs: Sequence[int]) -> list[Learnt]:
    """Return the complete items in an answer that was cut off. Raises UnusableAnswer if there are none."""
    text = _clean(answer)
    if "{" not in text:
        text = text.rpartition("\n")[0]
    items = find_items(text)
    if not items:
        raise UnusableAnswer("the model's answer was cut off")
    return _read_items(items, seqs)


def profile_for(seqs: Sequence[int]) -> Profile[list[Learnt]]:
    """Return how answers about the messages with these seqs are read and judged. The values of facts are not judged."""
    return Profile(
        read=lambda answer, _material: parse_learnt(answer, seqs),
        read_cut_off=lambda answer, _material: parse_cut_off(answer, seqs),
        text=lambda learnt: "\n".join(one.content for one in learnt if one.kind == "memory") or None,
        may_quote=True,  # a memory can quote a statement
    )


def _is_remark_about_nothing(text: str) -> bool:
    """Whether a text of at most three lines has a line that states that there is nothing.

    A longer text can be a story in which such a line occurs.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    return len(lines) <= _MOST_REMARK_LINES and any(map(says_nothing, lines))


_MOST_REMARK_LINES = 3


def _clean(answer: str) -> str:
    return FENCE.sub("\n", spoken(answer, truncate=True)).strip()


def _read_items(items: Sequence[Fields], seqs: Sequence[int]) -> list[Learnt]:
    scale = _find_scale(items)
    found: dict[tuple[str | None, str], Learnt] = {}
    has_nothing = not items
    for fields in items:
        key, content = _read_words(fields)
        if refuses(content):
            raise UnusableAnswer("the model refuses", "declined")
        if says_nothing(content):
            has_nothing = True
            continue
        sources = _read_sources(fields, seqs)
        if not content or not sources or _PLACEHOLDER.fullmatch(content):
            continue
        former = found.get((key, content))
        found[key, content] = Learnt(
            "fact" if key else "memory",
            key,
            content,
            tuple(sorted({*sources, *(former.sources if former else ())})),
            _read_category(fields),
            _read_importance(fields.get("importance"), scale),
            _read_tags(fields.get("tags")),
        )
    if not found and not has_nothing:
        raise UnusableAnswer("no item in the answer names one of the messages")
    return list(found.values())[:MAX_ITEMS]


def _read_words(fields: Fields) -> tuple[str | None, str]:
    """Return the key of a fact (None for a memory) and the content, "" if there is none."""
    key = fields.get("key", fields.get("fact"))
    value = _text(fields.get("value"))
    if isinstance(key, str) and value:
        name = normalise_key(key)
        return name or None, shorten(value, MAX_VALUE_CHARS) if name else ""
    content = next((text for name in (*CONTENT_KEYS, "fact") if (text := _text(fields.get(name)))), "")
    return None, shorten(content, MAX_CONTENT_CHARS)


def _text(value: object) -> str:
    """Return a string, a number or a list of strings on one line; "" for anything else.

    Escapes of JSON can produce control characters, lone surrogates and tokens of a chat template. They are removed: no
    text of the service contains them. Raises UnusableAnswer if reasoning in the text does not end.
    """
    if isinstance(value, list):
        value = ", ".join(one for one in value if isinstance(one, str))
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return " ".join(first_turn(without_controls(value)).replace("**", "").split()) if isinstance(value, str) else ""


def _read_sources(fields: Fields, seqs: Sequence[int]) -> list[int]:
    """Return the seqs of the messages that an item names; numbers that no message has are ignored."""
    written = next((fields[key] for key in SOURCE_KEYS if fields.get(key) not in (None, [], "")), None)
    values = written if isinstance(written, list) else [written]
    numbers = (number for value in values[:_MOST_SOURCES] for number in _list_numbers(value, len(seqs)))
    return sorted({seqs[number - 1] for number in numbers if 0 < number <= len(seqs)})


def _list_numbers(value: object, most: int) -> Iterator[int]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, float) and value.is_integer():
        yield int(value)
    elif isinstance(value, str) and _SOURCE_WORDS.issuperset(_WORD.findall(value[:_MOST_SOURCES_CHARS].lower())):
        for found in _RANGE.finditer(value[:_MOST_SOURCES_CHARS]):
            first, last = int(found[1]), int(found[2] or found[1])
            yield from range(first, min(last, most) + 1)


def _find_scale(items: Sequence[Fields]) -> float:
    """Return the divisor for importances: 10 if one of them is above 1, 100 if one is above 10, otherwise 1."""
    numbers = [_read_number(fields.get("importance")) for fields in items]
    most = max((number for number in numbers if number is not None), default=0.0)
    return 100.0 if most > 10 else 10.0 if most > 1 else 1.0


def _read_number(value: object) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip(" %")):
        return float(value.strip(" %"))
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(min(value, 100))
    return None


def _read_importance(value: object, scale: float) -> float:
    """Return an importance from 0 to 1: a number, a share such as `8/10`, or a word; else the default."""
    number = _read_number(value)
    if number is not None:
        is_scaled = number > 1 or (number == int(number) and scale > 1)
        return min(number / scale if is_scaled else number, 1.0)
    if not isinstance(value, str):
        return DEFAULT_IMPORTANCE
    if (share := _OUT_OF.search(value[:40])) and int(share[2]) > 0:
        return min(float(share[1]) / int(share[2]), 1.0)
    return next((rated for words, rated in _IMPORTANCE_WORDS if words.search(value[:40])), DEFAULT_IMPORTANCE)


def _read_category(fields: Fields) -> Category | None:
    named = fields.get("category", fields.get("type"))
    if not isinstance(named, str):
        return None
    return next((category for category, words in _CATEGORY_WORDS if words.search(named[:40])), None)


def _read_tags(value: object) -> tuple[str, ...]:
    written = _TAG_ENDS.split(value) if isinstance(value, str) else value if isinstance(value, list) else []
    tags = (" ".join(_text(tag).lower().strip(" #\"'").split()) for tag in written[:20] if isinstance(tag, str))
    return tuple(dict.fromkeys(tag for tag in tags if 0 < len(tag) <= MAX_TAG_CHARS))[:MAX_TAGS]
