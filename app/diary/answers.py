"""Parses a model's answer as a diary or a diary entry in the first person. Pure."""

import re

from app.diary.refusals import declines
from app.summarising.answer_text import UnusableAnswer, is_remnant, leaves_former
from app.summarising.judging.judge import Profile
from app.summarising.prose import is_empty_answer, read_prose

MAX_ENTRY_CHARS = 1_200
"""Enough for four long sentences. A longer entry is cut after a sentence, or within one if not even the first fits."""

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)]*(?=\s)|[。！？][」』）]*")


def parse_diary(answer: str, *, former: str = "") -> str:
    """Return the compressed diary that replaces `former`.

    Raises UnusableAnswer, also for "nothing" and "no changes": a fold always has something to keep.
    """
    text = read_prose(answer, refusing=declines)
    if is_empty_answer(text) or leaves_former(text, former):
        raise UnusableAnswer("the answer is empty")
    if is_remnant(text, former):
        raise UnusableAnswer("the answer keeps almost nothing of the former diary")
    return text


def parse_diary_entry(answer: str) -> str | None:
    """Return the entry as one paragraph of at most 1,200 characters, or None if nothing mattered.

    Raises UnusableAnswer.
    """
    text = read_prose(answer, refusing=declines)
    if is_empty_answer(text):
        return None
    return _shorten(" ".join(text.split()))


def _shorten(text: str) -> str:
    """Return `text` up to the last sentence that ends within the limit; if there is none, up to the last word."""
    if len(text) <= MAX_ENTRY_CHARS:
        return text
    head = text[:MAX_ENTRY_CHARS]
    ends = [end.end() for end in _SENTENCE_END.finditer(head)]
    return head[: ends[-1]] if ends else f"{head[:-1].rpartition(' ')[0] or head[:-1]}…"


DIARY_PROFILE = Profile(
    read=lambda answer, material: parse_diary(answer, former=material.former),
    text=lambda text: text,
    person="first",
    may_address=True,
    quotes_sources=True,
    from_sources=True,
    min_letters=10,
)
DIARY_ENTRY_PROFILE = Profile(
    read=lambda answer, _material: parse_diary_entry(answer), text=lambda text: text, person="first"
)
