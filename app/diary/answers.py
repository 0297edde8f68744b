"""A model's answer, read as a diary or an entry of one, in the first person. Pure."""

import re

from app.summarising.former import leaves_former
from app.summarising.prose import is_offer, read_prose, tells_nothing
from app.summarising.reading import UnusableAnswer

MAX_ENTRY_CHARS = 1_200
"""Four long sentences; what goes beyond is cut off at the end of a sentence."""

_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)]*(?=\s)|[。！？][」』）]*")

_AS_AN_AI = r"as an ai(?: \w+){0,2},? "
_OUTPUT = r"(?:content|material|text|response|request|task|entry|diary|story|roleplay|conversation)"

# A diary may well begin with "I'm sorry" or "I can't", and a character may be an AI: only what declines the task, and
# goes on with nothing but a reason of the provider's, is a refusal.
_DECLINES = re.compile(
    rf"(?:(?:i(?:['’]m| am) (?:(?:really|very|so) )?sorry|sorry|i apologi[sz]e|unfortunately)[,.]? (?:but )?)?"
    rf"(?:{_AS_AN_AI})?"
    rf"(?:i (?:can['’]?t|can ?not|won['’]?t|will not|must decline to)|i(?:['’]m| am) (?:unable|not able) to)"
    rf" (?:(?:help|assist) (?:you )?with (?:this|that)(?: {_OUTPUT})?"
    rf"|(?:create|generate|produce|provide|compress|complete|fulfil+|write|engage (?:in|with)|continue(?: with)?)"
    rf" (?:(?:this|that|the|a|an|any|such|your) )?(?:\w+ )?{_OUTPUT}"
    rf"|continue (?:with )?(?:this|that)|comply(?: with (?:this|that|the|your) {_OUTPUT})?)"
    rf"(?: about (?:this|that|these|those)(?: \w+)?)?"
    rf"(?:,? (?:that|which|as|because|since|due to)\b[^.!?]*\b(?:guideline|polic|explicit|sexual|harmful|inappropriate)"
    rf"[^.!?]*)?[.!]?"
    rf"|{_AS_AN_AI}i (?:keep|have) no diary[.!]?",
    re.I,
)


def parse_diary(answer: str, *, former: str = "") -> str:
    """The compressed diary that `former` has become.

    Raises UnusableAnswer, also for "nothing" and "no changes": there is always something to keep of what was written.
    """
    text = read_prose(answer, refusing=_declines)
    if tells_nothing(text) or leaves_former(text, former):
        raise UnusableAnswer("the answer is empty")
    return text


def parse_diary_entry(answer: str) -> str | None:
    """The entry as one paragraph of at most 1,200 characters; None where nothing mattered. Raises UnusableAnswer."""
    text = read_prose(answer, refusing=_declines)
    if tells_nothing(text):
        return None
    return _cut_off(" ".join(text.split()))


def _declines(text: str) -> bool:
    declined = _DECLINES.match(text)
    if declined is None:
        return False
    rest = text[declined.end() :].strip()
    return not rest or is_offer(rest)


def _cut_off(text: str) -> str:
    """`text` up to the last sentence, else the last word, that ends within the limit."""
    if len(text) <= MAX_ENTRY_CHARS:
        return text
    head = text[:MAX_ENTRY_CHARS]
    ends = [end.end() for end in _SENTENCE_END.finditer(head)]
    return head[: ends[-1]] if ends else f"{head[:-1].rpartition(' ')[0] or head[:-1]}…"
