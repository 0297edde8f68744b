"""Finds out whether two texts of memories say the opposite of each other. Pure."""

import re
import unicodedata
from typing import NamedTuple

_OR = r"(?<!\bor )(?<!\boder )(?<!\bo )(?<!\bou )(?<!\bили )(?<!\bczy )"
_ONLY = (
    r"(?! +(?:only|just|merely|nur|bloß|sólo|solo|solamente|seulement|só|apenas|somente|soltanto|только|лише|тільки"
    r"|tylko)\b)"
)
_UNTIL = r"(?<!\bпока )(?<!\bедва )(?<!\bчуть )(?<!\bпоки )(?<!\bледве )"

# Spanish and Italian have these words, and Portuguese, in which "no" means "in the", does not have any of them.
_SPANISH_OR_ITALIAN = re.compile(r"(?<!-)\b(?:el|en|la|las|los|una|y|del|di|il|che)\b")

# A text with one of these words becomes another sentence without it. A word that only looks like one of them in another
# language, or has another meaning, is left out ("no" in Portuguese, "pas" without "ne"): a missed opposite is not
# learnt, but a wrong one brings back what a person forgot.
_NOT = rf"{_OR}(?:no longer|no more|not|never|nicht|nie|niemals|nunca|jamás|non|não|{_UNTIL}не(?! раз\b)){_ONLY}"
_SPACED = re.compile(rf"\b(?:{_NOT})\b(?!-)", re.I)
_SPANISH_NO = re.compile(rf"\bno\b(?!\.|º|ª|-| *\d){_ONLY}", re.I)
_FRENCH = re.compile(rf"(\bn(?:e +|['’])(?:(?!qu)[\w'’-]{{1,30}} +){{1,2}}?)(?:pas|jamais)\b{_ONLY}", re.I)
_KOREAN = re.compile(r"(?<!\w)(?<!집 )안 (?=\w*(?:다|요|고|지만)(?!\w))|지 않(?=\w)")
_CHINESE = re.compile(r"(?<![会會是能有没沒不])(?:不再|不(?=[会會是能](?!不))|[没沒](?=有))")
_JAPANESE = re.compile(r"(?<!だけ)(?:では|じゃ)(?:ない|ありません)(?![かの?])")
_JAPANESE_VERB = re.compile(r"(?<!なり)ません(?![か?])")

_CONTRACTIONS = [
    (re.compile(r"\bwon['’]?t\b", re.I), "will not"),
    (re.compile(r"\b(?:can['’]?t|cannot)\b", re.I), "can not"),
    (re.compile(r"\b(\w+)n['’]t\b", re.I), r"\1 not"),
    (re.compile(r"\b(do|does|did)nt\b", re.I), r"\1 not"),
    (re.compile(r"\bkein(e[mnrs]?)?\b", re.I), r"nicht ein\1"),
]
_FILLERS = frozenset(["do", "does", "did", "still", "anymore", "ne", "n"])
_WORD = re.compile(r"\w+")
_LEAVES_OPEN = re.compile(r"\?|\b(?:whether|ob)\b", re.I)


class _Stripped(NamedTuple):
    """The words of a text without those that say no, and how many of those it has."""

    words: list[str]
    negations: int


def say_opposite(one: str, other: str) -> bool:
    """Return whether two texts differ only in words that say no, such as “not”, and one text has more of them.

    The languages are English, German, Spanish, French, Italian, Portuguese, Russian, Ukrainian, Chinese, Japanese and
    Korean. Words with another meaning are not counted, and all other words must be the same, except for endings such as
    that of “likes” in “does not like”. Questions have no opposite: “Isn't it cold?” says the same as “Is it cold?”.
    """
    if any(_LEAVES_OPEN.search(unicodedata.normalize("NFKC", text)) for text in (one, other)):
        return False
    first, second = _strip(one), _strip(other)
    return (
        first.negations != second.negations
        and len(first.words) == len(second.words)
        and all(map(_is_form_of, first.words, second.words))
    )


def _strip(text: str) -> _Stripped:
    text = unicodedata.normalize("NFKC", text)
    for pattern, full in _CONTRACTIONS:
        text = pattern.sub(full, text)
    patterns = [
        (_SPACED, " "),
        (_FRENCH, r"\1"),
        (_KOREAN, ""),
        (_CHINESE, ""),
        (_JAPANESE, ""),
        (_JAPANESE_VERB, "ます"),
    ]
    if _SPANISH_OR_ITALIAN.search(text):
        patterns.append((_SPANISH_NO, " "))
    found = 0
    for pattern, instead in patterns:
        text, count = pattern.subn(instead, text)
        found += count
    return _Stripped([word for word in _WORD.findall(text.casefold()) if word not in _FILLERS], found)


def _is_form_of(one: str, other: str) -> bool:
    """Return whether two words are the same, except for the ending “s” or “es” of a verb."""
    short, long = sorted((one, other), key=len)
    return short == long or (short.isascii() and long in (f"{short}s", f"{short}es"))
