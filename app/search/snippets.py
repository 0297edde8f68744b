"""The part of a text that answers a query best, with the words of the query marked. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from app.passages.words import WORD, fold, list_bare, stem_likely
from app.search.ranking import SimilarTerms

MARK = "**"
"""What is put before and after each word of the query."""

SNIPPET_CHARS = 200
"""The most characters of the text in a snippet; marks and ellipses come in addition."""

_SIMILAR = 0.5
"""How much a similar word counts in the choice of the part; the term itself counts 1."""

_ELLIPSIS = "…"


class _Match(NamedTuple):
    """A stretch of the text that has a term, or a word similar to it: from `start` to `end`, exclusive."""

    start: int
    end: int
    term: str
    is_similar: bool = False


def make_snippet(text: str, terms: Sequence[str], stem: Callable[[str], str] | None = None) -> str:
    """Return at most SNIPPET_CHARS of a text, on one line, with each term and each similar word between marks.

    The snippet begins shortly before the part of SNIPPET_CHARS that has the most different terms, or before the first
    of several such parts. A term of which a part has only a similar word counts half. If the text has no term, the
    snippet begins where the text begins.

    Args:
        text: The text.
        terms: The terms of the query, case-folded (`fold`) except for frequent words that are names (`find_names`).
        stem: Returns the stem of a word in the language of the chat; None compares words as they are.

    """
    flat = " ".join(text.split())
    matches = sorted(_find(flat, terms, stem))
    start, end = _choose(flat, matches)
    pieces, at = [_ELLIPSIS if start else ""], start
    for first, last in _join(one for one in matches if start <= one.start and one.end <= end):
        pieces += [flat[at:first], MARK, flat[first:last], MARK]
        at = last
    return "".join([*pieces, flat[at:end], _ELLIPSIS if end < len(flat) else ""])


def _find(text: str, terms: Sequence[str], stem: Callable[[str], str] | None) -> Iterator[_Match]:
    stems = [stem(term) for term in terms] if stem else terms
    bare = list_bare(terms, stem)
    similar = SimilarTerms(stems, bare)
    for found in WORD.finditer(text):
        word = found[0] if found[0] in terms else fold(found[0])  # names (`find_names`) are not folded
        if found["spaceless"]:
            yield from _find_inside(found, word, stems)
            continue
        (form,) = stem_likely([word], stems, stem, bare)
        if form in stems:
            yield _Match(*found.span(), form)
        else:
            yield from (_Match(*found.span(), term, is_similar=True) for term, _ in similar[form])


def _find_inside(found: re.Match[str], word: str, terms: Sequence[str]) -> Iterator[_Match]:
    """Yield each stretch that has a term, in a text without spaces between words (the group `spaceless` of WORD)."""
    for term in terms:
        at = word.find(term)
        while at != -1:
            if len(word) != len(found[0]):  # folding made several characters of one, so positions do not agree
                yield _Match(*found.span(), term)
                break
            yield _Match(found.start() + at, found.start() + at + len(term), term)
            at = word.find(term, at + 1)


def _choose(text: str, matches: Sequence[_Match]) -> tuple[int, int]:
    """Return where the snippet begins and ends, between words."""
    if len(text) <= SNIPPET_CHARS:
        return 0, len(text)
    best, most, first = 0, 0.0, 0
    inside: Counter[tuple[str, bool]] = Counter()
    for at, last in enumerate(matches):
        inside[last.term, last.is_similar] += 1
        while first < at and last.end - matches[first].start > SNIPPET_CHARS:
            inside[matches[first].term, matches[first].is_similar] -= 1
            first += 1
        if (value := _weigh(inside)) > most:
            best, most = matches[first].start, value
    start = max(0, min(best - SNIPPET_CHARS // 5, len(text) - SNIPPET_CHARS))
    end = start + SNIPPET_CHARS
    if start and (space := text.find(" ", start, best)) != -1:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", best, end)) > best:
        end = space
    return start, end


def _weigh(inside: Mapping[tuple[str, bool], int]) -> float:
    """Return how much the terms of a part count; `inside` counts its terms, and the words similar to each term."""
    exact = {term for (term, is_similar), count in inside.items() if count and not is_similar}
    similar = {term for (term, is_similar), count in inside.items() if count and is_similar}
    return len(exact) + _SIMILAR * len(similar - exact)


def _join(matches: Iterator[_Match]) -> list[tuple[int, int]]:
    """Return the positions of the matches, those that overlap or touch as one."""
    joined: list[tuple[int, int]] = []
    for one in matches:
        if joined and one.start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], one.end)
        else:
            joined.append((one.start, one.end))
    return joined
