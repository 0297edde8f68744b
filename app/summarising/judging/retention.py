"""Measures how much of a former text a new one keeps. Pure.

The length does not show it: a story that goes on can be as long as the summary that it replaces. So the words are
compared that only the former text has, and not the new messages: names, dates, places. A good fold drops some of them
and rewrites others; a text about something else keeps hardly any.
"""

import re

from app.summarising.sentences import find_terms

MIN_WORDS = 15
"""With fewer distinctive words the share says nothing."""

_STEM = 5
_UNCASED_STEM = 2
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Thai, Lao, Burmese and Khmer, whose words are not divided."""


def share_kept(text: str, former: str, texts: str) -> float:
    """Return the share of the words of `former` that `text` has, from 0 to 1, without those that are in `texts`.

    `texts` are the new messages. The share is 1 if fewer than fifteen words are left.
    """
    distinctive = _find_stems(former) - _find_stems(texts)
    if len(distinctive) < MIN_WORDS:
        return 1.0
    return len(distinctive & _find_stems(text)) / len(distinctive)


def _find_stems(text: str) -> set[str]:
    """Return how the long words, the names and the numbers in `text` begin.

    Words that begin alike count as one: "promise" and "promised", "сестра" and "сестру", "카이는" and "카이에게".
    """
    return {_stem(term) for term in find_terms(text) if _is_distinctive(term) and not _UNSPACED.match(term)}


def _stem(term: str) -> str:
    return term.casefold()[:_STEM] if term[0].isdigit() or _has_case(term) else term[:_UNCASED_STEM]


def _is_distinctive(term: str) -> bool:
    is_name = term[0].isupper() and len(term) > 2
    return len(term) >= _STEM or is_name or term[0].isdigit() or not _has_case(term)


def _has_case(term: str) -> bool:
    return term[0].isupper() or term[0].islower()
