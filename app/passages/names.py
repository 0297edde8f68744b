"""Frequent words of English that a text uses as names: `Will`, `May`. Pure.

Other words are folded (`words.fold`) before they are compared, and the folded word `will` says nothing about the topic.
A name is compared as it is written: `Will` in the query, in the text and in the index. No folded word begins with an
ASCII capital, so a name never equals a folded word.
"""

import re
from collections.abc import Iterable

from app.summarising.frequent import FREQUENT

_END = r"(?!\w|['’](?!s\b))"  # `Will's` is a name, `You're` is none

# A capital inside a sentence: after a word, a comma, a semicolon, a closing bracket, or speech that ends with a comma.
_INSIDE = rf"(?:(?<=[\w,;)] )|(?<=,[\"”’] ))[A-Z][a-z]+{_END}"

# `Will you come?` and `May I?` begin a question; `Will came` and `May?` begin with a name.
_FIRST = (
    rf"\b(?:Will|May){_END}(?!\s+(?:I|you|he|she|it|we|they|there|this|that|these|those|the|an?|my|your|his|her|its|our"
    r"|their|all|any\w*|some\w*|every\w*|one|not|be|do)\b)"
)

_SPEAKER = r"\A[A-Z][a-z]+(?=:)"
_NAME = re.compile(f"{_INSIDE}|{_FIRST}|{_SPEAKER}")
_CAPITAL = re.compile(rf"\b[A-Z][a-z]+{_END}")
_LEAST_TITLE_WORDS = 3


def find_names(text: str, known: Iterable[str] = ()) -> list[str]:
    """Return each frequent word of a text that is written as a name, in order, as often as it occurs.

    These are words with a capital inside a sentence, the speaker at the beginning (`Will: …`), and `Will` and `May` at
    the beginning of a sentence if no question begins with them. In a text of three or more words that all begin with a
    capital, only `known` names count, such as the names of a chat's characters. A known name that is a frequent word
    counts wherever it has a capital. The single words of a longer name, such as `The Doctor`, do not count. Words that
    are names only because they are `known` come last.
    """
    own = {name.lower() for name in known if name.lower() in FREQUENT}
    found = [] if _is_title(text) else [name for name in _NAME.findall(text) if name.lower() in FREQUENT]
    if own:
        found += [name for name in _CAPITAL.findall(text) if name.lower() in own and name not in found]
    return found


def is_name(term: str) -> bool:
    """Return whether a term is one of `find_names`, and not a folded word."""
    return "A" <= term[:1] <= "Z"


def _is_title(text: str) -> bool:
    return text.istitle() and len(text.split()) >= _LEAST_TITLE_WORDS
