"""Measures how much of a former text a new text keeps, and how much of a new text comes from its material. Pure.

A comparison of lengths would miss a new text that only continues the story, because it can be as long as the summary
that it replaces. So this module compares words, such as names, dates and places. Words that also occur in the new
messages do not count, because a text about these messages alone would contain them. A good new text drops some of the
remaining words and rewrites others; a text about something else keeps hardly any.
"""

import re
from collections.abc import Collection

from app.summarising.sentences import find_terms

MIN_WORDS = 15
"""With fewer distinctive words, the share is not reliable."""

MIN_WORDS_OF_REWRITTEN = 20
"""Replaces MIN_WORDS for a text that may be rewritten in a few sentences, such as a diary, and so may lose more."""

_MIN_WORDS_OF_ANSWER = 20

_STEM = 5
_UNCASED_STEM = 2
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Thai, Lao, Burmese and Khmer, which are written without spaces between words."""


def share_kept(text: str, former: str, texts: str, *, min_words: int = MIN_WORDS) -> float:
    """Return the share of the distinctive words of `former` that `text` contains too, from 0 to 1.

    Words that occur in `texts`, the new messages, do not count. If fewer than `min_words` words are left, return 1.
    """
    distinctive = _find_stems(former) - _find_stems(texts)
    if len(distinctive) < min_words:
        return 1.0
    return len(distinctive & _find_stems(text)) / len(distinctive)


def share_known(text: str, sources: str, names: Collection[str]) -> float:
    """Return the share of the distinctive words of `text` that `sources` contains too, from 0 to 1.

    Words of `names` do not count, because a text about the same people that says something else has them, too. If
    fewer than `_MIN_WORDS_OF_ANSWER` words are left, return 1.
    """
    distinctive = _find_stems(text) - _find_stems("\n".join(names))
    if len(distinctive) < _MIN_WORDS_OF_ANSWER:
        return 1.0
    return len(distinctive & _find_stems(sources)) / len(distinctive)


def _find_stems(text: str) -> set[str]:
    """Return the first letters of each long word, name and number in `text`, and of each word in a script without case.

    Words in the scripts of `_UNSPACED` are left out. Words that begin in the same way count as one: "promise" and
    "promised", "сестра" and "сестру", "카이는" and "카이에게".
    """
    return {_stem(term) for term in find_terms(text) if _is_distinctive(term) and not _UNSPACED.match(term)}


def _stem(term: str) -> str:
    return term.casefold()[:_STEM] if term[0].isdigit() or _has_case(term) else term[:_UNCASED_STEM]


def _is_distinctive(term: str) -> bool:
    is_name = term[0].isupper() and len(term) > 2
    return len(term) >= _STEM or is_name or term[0].isdigit() or not _has_case(term)


def _has_case(term: str) -> bool:
    return term[0].isupper() or term[0].islower()
