"""Splits chat messages into sentences, clauses and terms, in any script. Pure.

Chat is not prose: full stops are missing, actions are between asterisks, a list has one statement per line.
So the end of a line always ends a sentence, and a clause has at most 24 words, or 40 characters without spaces. Only
the eighth clause of a sentence can be longer: it contains the rest of the sentence.
Words are recognised by script, because case and spaces differ between scripts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

_CLAUSES = 8

_HAN = "々\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30ffー"
# Letters and digits, with the vowel signs of Indic scripts and Thai, which \w does not match.
_LETTER = rf"(?:[^\W_{_HAN}{_HIRAGANA}{_KATAKANA}]|[\u0300-\u036f\u0900-\u0963\u0966-\u0e7f])"

_URL = re.compile(r"(?:https?://|www\.)\S+")
_SPACED_WORD = rf"{_LETTER}+(?:(?:-|(?<=\d)[.,:/](?=\d)){_LETTER}+)*"
_WORD = re.compile(rf"[{_KATAKANA}]+|[{_HAN}]+|{_SPACED_WORD}")
# Scripts without spaces are split by the typical length of a word: Han, kana, and Thai, Lao, Burmese and Khmer.
_COUNTED_WORD = re.compile(
    rf"[{_HAN}]|[{_HIRAGANA}{_KATAKANA}]{{1,2}}|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{{1,4}}|{_SPACED_WORD}"
)
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:(?:-|(?<=\d)[.,:/](?=\d))[A-Za-z0-9]+)*")
_FIRST_WORD = re.compile(r"[.!?…:\n*\"“«(](?:(?<=[.!?…:\n])[\"”’»)*]* ?)?([^\W\d_]+(?:-[^\W_]+)*)")
_HAN_RUN = re.compile(rf"[{_HAN}]{{3,}}")
_DIGIT = re.compile(r"\d")
_KATAKANA_RUN = re.compile(rf"[{_KATAKANA}]{{2,}}")

# Control characters, direction overrides, and lone surrogates, which cannot be encoded.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+")
_LINE_MARK = re.compile(r"^(?:[#>]+|[-*+•]|\d{1,2}[.)])\s+")
_EDGE_MARKS = " \t*_~`|#>"
_MARKS_AFTER = " \"'”’»」』)]*_!！"
_ACTION = re.compile(r"(?<![*\w])\*(?![\s*])([^*]+)\*(?![*\w])")
_LAST_MARKS = re.compile(r"[.!?…؟۔।。！？｡][\"'”’»)\]*_」』）]*\s*$")
_END = re.compile(r"[.!?…؟۔।]+[\"'”’»)\]*_]*(?=\s|$)|[。！？｡]+[」』”’）]*")
_ABBREVIATION = re.compile(r"(?:^|[\s(*_\"“])(?:[A-HJ-ZА-Ю]|Mrs?|Ms|Dr|St|Prof|vs|e\.g|i\.e)\.$")
_CLAUSE_END = re.compile(r"[,;:–—]\s+|\s[-–—]\s+|(?<=\w)-\s+|[、，；：]\s*|\s+(?=\()|(?<=\))\s+")
_SHORT_CLAUSE = re.compile(r"(?:\S{1,40}(?:\s+|$)){1,24}|\S{1,40}")

_NUMBER_WORDS = frozenset(
    _ASCII_WORD.findall("""
        two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
    """)
)


class Kind(Enum):
    """The kind of a sentence; it affects the sentence's weight."""

    STATEMENT = "statement"
    QUESTION = "question"
    ACTION = "action"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence as it was written, without line breaks.

    Attributes:
        clauses: Its clauses in order, at most 8, with the marks and the space that end them;
            joined, they are the sentence.
        kind: Statement, question, action (between asterisks) or note (a caption in square brackets).

    """

    clauses: tuple[str, ...]
    kind: Kind


def split_sentences(text: str, min_words: int = 1) -> Iterator[Sentence]:
    """Yield the sentences of `text` in order, without surrounding Markdown marks and control characters.

    A sentence of fewer than `min_words` words is joined to the next one of its line. If it is the last one of its line,
    it is joined to the one before.
    """
    for line in text.splitlines():
        for part, is_action in _split_actions(_LINE_MARK.sub("", clean_line(line))):
            for written in _split_ends(part, min_words):
                if sentence := written.strip(_EDGE_MARKS):
                    yield Sentence(_split_clauses(sentence), Kind.ACTION if is_action else _kind(sentence))


def clean_line(text: str) -> str:
    """Return `text` on one line, without control characters and with white space collapsed to single spaces."""
    return " ".join(_UNSEEN.sub(" ", text).split())


def find_terms(text: str) -> list[str]:
    """Return the words of `text` as spelled, with repetitions, without URLs and hiragana (grammatical words).

    Chinese and Japanese are written without spaces, so a run of three or more Han characters is split into bigrams.
    """
    if "://" in text or "www." in text:
        text = _URL.sub(" ", text)
    if text.isascii():  # the same result, twice as fast
        return _ASCII_WORD.findall(text)
    words: list[str] = _WORD.findall(text)
    return [term for word in words for term in (_bigrams(word) if _HAN_RUN.fullmatch(word) else (word,))]


def count_words(text: str) -> int:
    """Return the number of words in `text`; an estimate for scripts without spaces."""
    return len((_ASCII_WORD if text.isascii() else _COUNTED_WORD).findall(text))


def ends_sentence(clause: str) -> bool:
    """Whether `clause` ends a sentence, judging by its last mark."""
    return _LAST_MARKS.search(clause) is not None


def find_first_words(text: str) -> list[str]:
    """Return the words of `text` that begin a sentence, a quote or an action, where a capital means nothing."""
    return _FIRST_WORD.findall(f"\n{text}")


def is_number(term: str) -> bool:
    """Whether `term` contains a digit of any script or an English number word from `two` up."""
    return _DIGIT.search(term) is not None or not _NUMBER_WORDS.isdisjoint(term.casefold().split("-"))


def is_katakana(term: str) -> bool:
    """Whether `term` is a katakana word: a foreign name or a loan word."""
    return _KATAKANA_RUN.fullmatch(term) is not None


def _kind(sentence: str) -> Kind:
    """Return the kind of `sentence`. If it joins several short sentences, it is a question if all of them are."""
    if sentence[0] == "[" and sentence[-1] == "]":
        return Kind.NOTE
    bounds = [0, *_find_ends(sentence), len(sentence)]
    said = filter(None, (sentence[start:end].rstrip(_MARKS_AFTER) for start, end in pairwise(bounds)))
    return Kind.QUESTION if all(part.endswith(("?", "？", "؟")) for part in said) else Kind.STATEMENT


def _bigrams(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def _split_actions(line: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of `line`, each with whether it is an action such as `*smiles*`.

    Asterisks inside a sentence are emphasis: an action follows the end of a sentence, and the text after it does not
    begin with a small letter.
    """
    start = 0
    for match in _ACTION.finditer(line):
        before, after = line[start : match.start()].strip(), line[match.end() :].lstrip()
        if (not before or _END.search(before[-3:])) and not after[:1].islower():
            yield before, False
            yield match[1], True
            start = match.end()
    yield line[start:], False


def _split_ends(text: str, min_words: int) -> Iterator[str]:
    bounds = [0]
    counted, words = 0, 0  # no word crosses an end, so the counts of the pieces between two ends add up
    for end in _find_ends(text):
        words += count_words(text[counted:end])
        counted = end
        if words >= min_words:
            bounds.append(end)
            words = 0
    if len(bounds) > 1 and count_words(text[bounds[-1] :]) < min_words:
        bounds.pop()
    return (text[start:end].strip() for start, end in pairwise([*bounds, len(text)]))


def _find_ends(text: str) -> Iterator[int]:
    """Yield the positions where sentences end: after their marks, before the space."""
    for match in _END.finditer(text):
        trails_off = match[0].startswith(("..", "…")) and text[match.end() :].lstrip()[:1].islower()
        if not trails_off and not _ABBREVIATION.search(text, max(0, match.end() - 8), match.end()):
            yield match.end()


def _split_clauses(sentence: str) -> tuple[str, ...]:
    starts = {match.end() for match in _CLAUSE_END.finditer(sentence)}
    starts.update(len(sentence) - len(sentence[end:].lstrip()) for end in _find_ends(sentence))
    inner = sorted(starts - {len(sentence)})
    clauses = [sentence[a:b] for a, b in zip([0, *inner], [*inner, len(sentence)], strict=True)]
    short = [piece for clause in clauses for piece in _SHORT_CLAUSE.findall(clause)]
    return (*short[: _CLAUSES - 1], "".join(rest)) if (rest := short[_CLAUSES - 1 :]) else tuple(short)
