"""Ranks texts by how well they answer a query. Pure.

A text scores for each term of the query that it has, more for rare terms, and less if it is long (BM25 with OR
semantics); how much less follows from the texts (`_find_discount`). If vectors were compared, a text scores half by its
words and half by its meaning. A word that is similar to a term (trigrams, as in `pg_trgm`) counts in part, so that
typos and inflected forms are found. A word that differs from a term by its accents counts almost as much as the term.
A message gains from the message next to it: an answer often has no word of its question. Importance and recency only
decide between texts that answer about equally well. If a score were multiplied by them, new texts would come before
texts that answer the query. If the client gives no query for recall, the score of a memory is also multiplied by a
factor for its strength (`Candidate.weight`).
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from app.memories.memory import DEFAULT_IMPORTANCE
from app.passages.names import find_names, is_name
from app.passages.words import (
    Bare,
    bare_first,
    count_words,
    drop_accents,
    has_frequent,
    is_spaceless,
    list_bare,
    list_words,
    stem_likely,
)
from app.summarising.frequent import FREQUENT

LEAST_SIMILARITY = 0.45
"""A word that is less similar to a term than this does not match the term."""

BARE_SIMILARITY = 0.9
"""The similarity of two words that differ by their accents only. A word with the accents of the term counts more."""

MEANT_SIMILARITY = 0.6
"""The assumed similarity of a misspelt term and the word that is meant; below 1, because the guess can be wrong."""

IMPORTANCE_BONUS = 0.05
RECENCY_BONUS = 0.03
"""How much importance and recency each add to a score at most. The words of the query add at most 1."""

FULL_STRENGTH = DEFAULT_IMPORTANCE
"""A memory of this strength or more is not weighed down in recall. So a new memory with the default importance competes
with messages by its words and its meaning alone."""

NEIGHBOUR_SHARE = 0.25
"""A message gets this share of the parts `text` and `vector` of its better neighbour, the message before or after."""

VECTOR_SHARE = 0.5
"""The share of the meaning in a score, if vectors were compared. The words have the rest."""

_SATURATION = 1.2
_FUZZY_CHARS = 5  # shorter words have too few trigrams to be similar to each other


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may answer a query.

    Attributes:
        source: Its source, such as `memory:<id>`.
        text: The text.
        importance: From 0 to 1; None if it has none.
        last_seq: The last message that it is about. For a text about no message, the message that it follows, or 0.
        recency: From 0 to 1; 1 is the newest message of its line.
        spoken_in: For a message, the id of its line, on which `last_seq` is its seq; None for other texts.
        similarity: The cosine of its vector and that of the query; None if it has none.
        weight: The factor of its score, from 0 to 1: `weigh_strength` for a memory, if the search weighs memories by
            their strength; otherwise 1.

    """

    source: str
    text: str
    importance: float | None = None
    last_seq: int = 0
    recency: float = 0.0
    spoken_in: Hashable | None = None
    similarity: float | None = None
    weight: float = 1.0


class Scored(NamedTuple):
    """A text that answers a query.

    Attributes:
        source: Its source.
        score: The sum of the parts. `text` and `vector` add up to 1 if both the words and the meaning are the best.
        text: What its words add to the score.
        vector: What its meaning adds; None if no vectors were compared.
        neighbours: What the better one of its neighbours adds.
        importance: What its importance adds.
        recency: What its recency adds.
        fading: What its weight takes away: 0, or a negative number.

    """

    source: str
    score: float
    text: float
    vector: float | None
    neighbours: float
    importance: float
    recency: float
    fading: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """The parts of the score by name; without `vector` if no vectors were compared, and `fading` if it is 0."""
        meaning = {} if self.vector is None else {"vector": self.vector}
        bonuses = {"neighbours": self.neighbours, "importance": self.importance, "recency": self.recency}
        faded = {"fading": self.fading} if self.fading else {}
        return {"text": self.text, **meaning, **bonuses, **faded}


def rank(
    terms: Sequence[str],
    candidates: Sequence[Candidate],
    *,
    total: int,
    stem: Callable[[str], str] | None = None,
    lowest: float | None = None,
    meant: Mapping[str, str] | None = None,
) -> list[Scored]:
    """Return the candidates that have a term of the query, a similar word or a similar meaning, best first.

    If at least one candidate has a similarity, vectors count: the most similar text gets VECTOR_SHARE for its meaning,
    and the least similar one of the sample (see `lowest`) and the candidates gets nothing. A text without a vector (a
    new one, or one of the user's own scope) gets points for its words only: half of these points if it has few of the
    query's terms, more if it has more terms, all points if it has all terms. So a text with only one frequent word does
    not come before one with a similar meaning.

    Args:
        terms: The terms of the query, each once.
        candidates: Texts with different sources.
        total: How many texts were searched, at least the number of candidates.
        stem: Returns the stem of a word in the language of the chat; None compares words as they are.
        lowest: The lowest similarity in a sample of the messages that were compared; None if there was no sample. Some
            models' cosines are all close together, so similarities are scaled. The scale begins at the lowest one of
            the sample and the candidates, and ends at the highest one of the candidates.
        meant: For each misspelt term, the word that is probably meant (`spelling.py`); it counts as a similar word,
            with whatever accents.

    """
    terms, shares, counts = _compare(terms, [one.text for one in candidates], stem, meant or {})
    having = Counter(itertools.chain.from_iterable(shares))
    rarity = {term: math.log1p((total - having[term] + 0.5) / (having[term] + 0.5)) for term in terms}
    lengths = [sum(one.values()) for one in counts]
    discount = _find_discount(map(len, counts), lengths)
    mean_words = sum(lengths) / max(len(lengths), 1) or 1.0
    rooms = [_SATURATION * (1 - discount + discount * words / mean_words) for words in lengths]
    raw = [_weigh(one, rarity, room) for one, room in zip(shares, rooms, strict=True)]
    best = max(raw, default=0.0) or 1.0
    span = _find_span(candidates, lowest)
    if span is None:
        own: list[tuple[float, float | None]] = [(value / best, None) for value in raw]
    else:
        own = [
            _divide(value / best, one, share, rarity, span)
            for one, value, share in zip(candidates, raw, shares, strict=True)
        ]
    by_position = {
        (one.spoken_in, one.last_seq): text + (vector or 0.0)
        for one, (text, vector) in zip(candidates, own, strict=True)
        if one.spoken_in is not None
    }
    scored = [
        (_add_bonuses(one, text, vector, by_position), one)
        for one, (text, vector) in zip(candidates, own, strict=True)
        if text > 0 or one.similarity is not None
    ]
    scored.sort(key=lambda pair: (-pair[0].score, -pair[1].last_seq, pair[1].source))
    return [one for one, _ in scored]


def find_unmatched(
    terms: Sequence[str],
    texts: Iterable[str],
    *,
    stem: Callable[[str], str] | None = None,
    language: str | None = None,
) -> list[str]:
    """Return the terms for which no text has the word itself, a word with the same stem or a similar word.

    A frequent word of the language (`is_frequent`) does not count as similar. The texts are read until each term is
    found.
    """
    stems = {term: stem(term) if stem else term for term in terms}
    bare = list_bare(terms, stem)
    similar = SimilarTerms(list(stems.values()), bare)
    frequent = set(stem_likely(FREQUENT, stems.values(), stem)) if has_frequent(language) else frozenset[str]()
    left = set(stems.values())
    for text in texts:
        if not left:
            break
        words = _count(text, list(stems.values()), stem, bare).keys()
        left -= words | similar.find_near(words - frequent).keys()
    return [term for term in terms if stems[term] in left]


def weigh_strength(strength: float) -> float:
    """Return the weight of a memory with this strength in recall: 1 from FULL_STRENGTH on, less for a weaker one."""
    return min(1.0, strength / FULL_STRENGTH)


def find_similarities(found: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """Return the similarity by source. A long text has a vector for each of its sections; the highest one counts."""
    similarities: dict[str, float] = {}
    for source, value in found:
        if value is not None:
            similarities[source] = max(value, similarities.get(source, value))
    return similarities


def similarity(one: str, other: str) -> float:
    """Return the share of the trigrams that two words have in common, from 0 to 1."""
    mine, others = _trigrams(one), _trigrams(other)
    return len(mine & others) / len(mine | others)


def _find_discount(distinct: Iterable[int], lengths: Sequence[int]) -> float:
    """Return how much long texts are discounted, from 0 to 1: the root of the share of words that repeat another.

    `distinct` has the number of different words of each text, and `lengths` the number of all its words. Where a long
    text repeats its words, its terms are counted more often although it does not say more. Where it does not, a long
    text says more than a short one, and is not discounted. docs/adr/0041 has the figures.
    """
    words = sum(lengths)
    return math.sqrt(1 - sum(distinct) / words) if words else 0.0


def _weigh(shares: Mapping[str, float], rarity: Mapping[str, float], room: float) -> float:
    """Return what the terms of a text add up to; a term that is counted `room` times gets half of its rarity."""
    weight = 0.0
    for term, count in shares.items():
        weight += rarity[term] * count / (count + room)
    return weight


def _find_coverage(shares: Mapping[str, float], rarity: Mapping[str, float]) -> float:
    """Return the rarity of the terms that a text has, divided by the rarity of all terms."""
    having = sum(rarity[term] * min(share, 1.0) for term, share in shares.items())
    return having / (sum(rarity.values()) or 1.0)


def _find_span(candidates: Sequence[Candidate], lowest: float | None) -> tuple[float, float] | None:
    """Return the lowest and the highest similarity; None if no vectors were compared."""
    known = [one.similarity for one in candidates if one.similarity is not None]
    return (min(known if lowest is None else (*known, lowest)), max(known)) if known else None


def _divide(
    text: float, one: Candidate, shares: Mapping[str, float], rarity: Mapping[str, float], span: tuple[float, float]
) -> tuple[float, float]:
    """Return the parts of a score for the words and for the meaning; `text` is from 0 to 1."""
    if one.similarity is None:
        return (1 - VECTOR_SHARE + VECTOR_SHARE * _find_coverage(shares, rarity)) * text, 0.0
    low, high = span
    near = (one.similarity - low) / (high - low) if high > low else 1.0
    return (1 - VECTOR_SHARE) * text, VECTOR_SHARE * near


def edges_of(word: str) -> tuple[str, ...]:
    """Return the beginning and the end of a word; () for a word that is too short to be similar to another."""
    return (word[:3], word[-3:]) if len(word) >= _FUZZY_CHARS else ()


Near = Mapping[str, Sequence[tuple[str, float]]]
"""By term, the words that are similar to it, with the similarity; a term without such words is missing."""


class SimilarTerms(dict[str, Sequence[tuple[str, float]]]):
    """By word, the terms that it is similar to, but not equal to, with the similarity; computed at the first use.

    Attributes:
        edges: The beginnings and ends of the terms (`edges_of`). A similar word has one of them, or differs from a term
            by its accents only.
        bare: The terms by their bare forms; by default those of the terms as they are.

    """

    def __init__(self, terms: Sequence[str], bare: Bare | None = None) -> None:
        super().__init__()
        self.bare = list_bare(terms, None) if bare is None else bare
        self._terms = [term for term in terms if len(term) >= _FUZZY_CHARS]
        self.edges = {edge for term in self._terms for edge in edges_of(term)}
        self._firsts = {form[0] for form in self.bare if not is_spaceless(form)}  # spaceless words have no accents

    def find_near(self, words: Iterable[str]) -> Near:
        """Return the similar words of each term."""
        near: dict[str, list[tuple[str, float]]] = {}
        for word in words:
            has_edge = word[:3] in self.edges or word[-3:] in self.edges
            if has_edge or word in self.bare or (not word.isascii() and bare_first(word[0]) in self._firsts):
                for term, likeness in self[word]:
                    near.setdefault(term, []).append((word, likeness))
        return near

    def __missing__(self, word: str) -> Sequence[tuple[str, float]]:
        found = [(term, BARE_SIMILARITY) for term in self._find_bare(word)]
        if len(word) >= _FUZZY_CHARS and (word[:3] in self.edges or word[-3:] in self.edges):
            known = {word, *(term for term, _ in found)}
            near = [(term, similarity(term, word)) for term in self._terms if term not in known]
            found += [(term, likeness) for term, likeness in near if likeness >= LEAST_SIMILARITY]
        self[word] = found
        return found

    def _find_bare(self, word: str) -> list[str]:
        """Return the terms that differ from a word, or from its stem, by their accents only."""
        if word in FREQUENT:
            return []
        same = self.bare.get(word) or self.bare.get(drop_accents(word), ())
        return [term for term in dict.fromkeys(same) if term != word]


def _compare(
    terms: Sequence[str], texts: Sequence[str], stem: Callable[[str], str] | None, meant: Mapping[str, str]
) -> tuple[Sequence[str], list[dict[str, float]], list[Mapping[str, int]]]:
    """Return the terms as they are compared, and the shares (`_find_shares`) and the words (`_count`) of each text."""
    bare, bare_meant = list_bare(terms, stem), list_bare(meant.values(), stem)
    if stem is not None:
        meant = {stem(term): stem(word) for term, word in meant.items()}
        terms = list(dict.fromkeys(map(stem, terms)))
    counts = [_count(one, [*terms, *meant.values()], stem, {**bare, **bare_meant}) for one in texts]
    words = set[str]().union(*counts)
    near = dict(SimilarTerms(terms, bare).find_near(words))
    same = SimilarTerms((), bare_meant).find_near(words) if meant else {}  # words that differ by their accents only
    for term, word in meant.items():
        forms = [word, *(form for form, _ in same.get(word, ()))]
        near[term] = [*near.get(term, ()), *((form, MEANT_SIMILARITY) for form in forms)]
    return terms, [_find_shares(terms, one, near) for one in counts], counts


def _count(text: str, terms: Sequence[str], stem: Callable[[str], str] | None, bare: Bare) -> Mapping[str, int]:
    """Return how often a text has each of its words. With `stem`, the forms of `stem_likely` are counted."""
    if stem is None:
        return count_words(text)
    names = find_names(text) if any(map(is_name, terms)) else ()
    return Counter(stem_likely([*list_words(text), *names], terms, stem, bare))


def _find_shares(terms: Sequence[str], counts: Mapping[str, int], near: Near) -> dict[str, float]:
    """Return by term how often a text has it; a similar word counts in part."""
    shares: dict[str, float] = {}
    for term in terms:
        if term in counts:
            shares[term] = counts[term]
        elif term in near:
            share = max(likeness * counts.get(word, 0) for word, likeness in near[term])
            if share:
                shares[term] = share
    return shares


@lru_cache(maxsize=8_192)
def _trigrams(word: str) -> frozenset[str]:
    padded = f"  {word} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))


def _add_bonuses(
    one: Candidate, text: float, vector: float | None, by_position: Mapping[tuple[Hashable | None, int], float]
) -> Scored:
    before = by_position.get((one.spoken_in, one.last_seq - 1), 0.0)
    after = by_position.get((one.spoken_in, one.last_seq + 1), 0.0)
    neighbours = NEIGHBOUR_SHARE * (before if before > after else after)
    importance = IMPORTANCE_BONUS * (one.importance or 0.0)
    recency = RECENCY_BONUS * (one.recency if one.recency < 1.0 else 1.0)
    whole = text + (vector or 0.0) + neighbours + importance + recency
    fading = (one.weight - 1.0) * whole
    return Scored(one.source, whole + fading, text, vector, neighbours, importance, recency, fading)
