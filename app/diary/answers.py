"""A model's answer, read as a diary or an entry of one, in the first person. Pure."""

import re

from app.summarising.prose import read_prose, tells_nothing
from app.summarising.reading import UnusableAnswer

MAX_ENTRY_CHARS = 1_200
"""Four long sentences; what goes beyond is cut off at the end of a sentence."""

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)]*(?=\s)|[。！？][」』）]*")

# A diary may well begin with "I'm sorry" or "I can't": only what declines the task is a refusal.
_DECLINES = re.compile(
    r"(?:(?:i(?:['’]m| am) (?:(?:really|very|so) )?sorry|sorry|i apologi[sz]e|unfortunately)[,.]? (?:but )?)?"
    r"(?:i (?:can['’]?t|can ?not|won['’]?t|will not|must decline to)|i(?:['’]m| am) (?:unable|not able) to)"
    r" (?:(?:help|assist) (?:you )?with (?:this|that)\b|(?:create|generate|produce|provide|compress|complete|fulfil+)\b"
    r"|write (?:this|that|the|a|an|such)\b(?: \w+)?(?: entry| diary| content| text)\b|comply|engage (?:in|with)\b"
    r"|continue (?:with )?(?:this|that)\b)|as an ai\b",
    re.I,
)


def parse_diary(answer: str) -> str:
    """The compressed diary. Raises UnusableAnswer: there is always something to keep of what was written down."""
    text = read_prose(answer, refusing=_declines)
    if tells_nothing(text):
        raise UnusableAnswer("the answer is empty")
    return text


def parse_diary_entry(answer: str) -> str | None:
    """The entry as one paragraph of at most 1,200 characters; None where nothing mattered. Raises UnusableAnswer."""
    text = read_prose(answer, refusing=_declines)
    if tells_nothing(text):
        return None
    return _cut_off(" ".join(text.split()))


def _declines(text: str) -> bool:
    return _DECLINES.match(text) is not None


def _cut_off(text: str) -> str:
    """`text` up to the last sentence, else the last word, that ends within the limit."""
    if len(text) <= MAX_ENTRY_CHARS:
        return text
    head = text[:MAX_ENTRY_CHARS]
    ends = [end.end() for end in _SENTENCE_END.finditer(head)]
    return head[: ends[-1]] if ends else f"{head[:-1].rpartition(' ')[0] or head[:-1]}…"
