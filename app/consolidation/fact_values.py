"""Reads the value of a fact from the words that follow "is" or "allergic to". Pure.

A value ends at a comma or a dash ("green, of course"), before a reason ("because …"), and before words that add nothing
("cats though"). Words that express doubt or denial ("I think", "not", "lol") and words that are no value ("in Lisbon",
"anything") give no value.
"""

import re
from collections.abc import Iterator

MAX_VALUE_CHARS = 60
_MAX_ALLERGEN_WORDS = 4

_FILLER = (
    r"(?:actually|definitely|certainly|honestly|obviously|of course|for sure|hands down|by far|still|also|now|nowadays"
    r"|these days|though|tho|sadly|unfortunately|alas|too|as well|by the way|btw|etc)"
)
_FIRST_FILLERS = re.compile(rf"(?:{_FILLER}[, ]\s*)+")  # only in lower case: `Still Alice` can be a title
_LAST_FILLERS = re.compile(rf"(?:[, ]\s*{_FILLER})+$")
_DOUBT = re.compile(
    r"\b(?:not|never|no longer|maybe|perhaps|probably|possibly|likely|think|guess|believe|suppose|assume|sure|hope|wish"
    r"|or|either|depends|if|when|whenever|unless|except|only|but|almost|mostly|usually|sometimes|kind of|sort of|kinda"
    r"|used to|was|were|would|could|supposed|today|tonight|right now|at the moment|for now|this week|lol|lmao|rofl|jk"
    r"|ha(?:ha)+|hehe\w*|kidding|joking|jokes?)\b",
    re.I,
)
_DENIAL = re.compile(r"n['’]t\b", re.I)
_ASIDE_WORDS = (
    r"(?:i|we|you|yours?|my|our|he|she|it|its|they|that|this|there|what|please|don['’]t)(?:['’](?:m|s|ve|ll|d|re))?\b"
)
_ASIDE = re.compile(rf"(?:because|since|which|so|(?:and )?{_ASIDE_WORDS})", re.I)
"""The beginning of a remark that does not change the value before it."""
_VALUE_END = re.compile(rf",\s*|\s+[-–—]+\s+|\s+(?=(?:because|since|which|and {_ASIDE_WORDS})\b)", re.I)
_NO_VALUE = re.compile(
    r"(?:when|how|that|this|these|those|to|one|it|what|where|who|because|so|very|too|quite|pretty|really|such|just"
    r"|always|already|finally|currently|any\w*|some\w*|every\w*|no\w*|whatever|all|both|hard|tough|tied?|impossible"
    r"|in|on|at|near|about|from|over|under|out|off|back|here|being|having|getting|going|coming|playing|losing|winning"
    r"|broken|gone|closed|dead|dirty|ruined|missing|cancell?ed|you|him|her|them|us|me|people)\b",
    re.I,
)
_MARKS = re.compile(r"[.!?,;:…\"“”()]")
_LAST_MARKS = re.compile(r"[^\w+#%]+$")
_VERB = re.compile(r"\b(?:is|are|am|has|have|had|do|does|did|will|can|makes?|gets?|sucks?)\b|['’](?:s|re|m)\b", re.I)
_LIST_MARK = re.compile(r",\s*(?:and\s+|&\s*)?|\s+(?:and|&)\s+", re.I)
_LAST_OF_LIST = re.compile(r"(?:^|[, ])(?:and|&)\s+(?P<last>[\w'’-]+(?: [\w'’-]+){0,3})", re.I)
_ARTICLE = re.compile(r"(?:the|an?|my|all|most)\s+", re.I)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"(?:(?:the )?{_DAY}(?: of)? {_MONTH}|{_MONTH} (?:the )?{_DAY}|\d{{1,2}}[./-]\d{{1,2}}(?:[./-]\d{{2,4}})?)"
    r"(?:,? (?:19|20)\d\d)?(?![\w/-])|\d{4}-\d\d-\d\d(?!\w)",
    re.I,
)


def read_value(said: str) -> str | None:
    """Return the value with which `said` begins, or None if there is none or it is in doubt.

    `said` is the rest of a sentence, after words such as "my favourite colour is".
    """
    value, rest = _divide(_strip(said))
    return value if _is_value(value) and _is_aside(rest) else None


def read_date(said: str) -> str | None:
    """Return the date with which `said` begins, as it is written; None if there is none or it is in doubt."""
    bare = _strip(said)
    found = _DATE.match(bare)
    return found[0] if found and _is_aside(bare[found.end() :].lstrip(", ")) else None


def read_allergens(said: str) -> Iterator[str]:
    """Yield each thing that `said` lists, such as `peanuts, bees and cats, sadly`; none if one of them is in doubt."""
    listed, rest = _divide(_strip(said))
    last = _LAST_OF_LIST.search(rest)
    if rest and last and not _ASIDE.match(rest):
        listed, rest = f"{listed}, {rest[: last.end()]}", rest[last.end() :].lstrip(", ")
    allergens = [_ARTICLE.sub("", one.strip(), count=1) for one in _LIST_MARK.split(listed)]
    is_call = _MARKS.search(rest) is None and len(rest.split()) <= 1  # the name of a listener: "bees and cats, Kai"
    if all(map(_is_allergen, allergens)) and (_is_aside(rest) or (is_call and not _DOUBT.search(rest))):
        yield from allergens


def _strip(said: str) -> str:
    """Return `said` without the words and marks at its ends that add nothing."""
    first = _FIRST_FILLERS.match(said)
    bare = said[first.end() if first else 0 :].strip()
    if "…" in bare or "..." in bare:
        return bare
    return _LAST_FILLERS.sub("", _LAST_MARKS.sub("", bare))


def _divide(said: str) -> tuple[str, str]:
    """Return `said` up to the end of its value, and the rest."""
    end = _VALUE_END.search(said)
    if end is None:
        return said, ""
    return _LAST_FILLERS.sub("", said[: end.start()]), said[end.end() :]


def _is_value(value: str) -> bool:
    return (
        len(value) <= MAX_VALUE_CHARS
        and any(map(str.isalnum, value))
        and not _MARKS.search(value)
        and not _NO_VALUE.match(value)
        and not _DOUBT.search(value)
        and not _DENIAL.search(value)
    )


def _is_allergen(name: str) -> bool:
    return _is_value(name) and len(name.split()) <= _MAX_ALLERGEN_WORDS and not _VERB.search(name)


def _is_aside(rest: str) -> bool:
    """Whether the text after a value does not change the value."""
    return not rest or (_ASIDE.match(rest) is not None and not _DOUBT.search(rest))
