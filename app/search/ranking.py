"""Ranks texts by how well they answer a query. Pure.

A text scores for each term of the query that it has, more for rare terms, and a little less if it is long (BM25 with OR
semantics). If vectors were compared, a message scores half by its words and half by its meaning. A word that is similar
to a term (trigrams, as in `pg_trgm`) counts in part, so that typos and inflected forms are found. A message gains from
the message next to it: an answer often has no word of its question. Importance and recency only decide between texts
that answer about equally well: as factors they would replace what is asked for by what is new.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.passages.words import count_words, list_words, stem_likely

LEAST_SIMILARITY = 0.45
"""Words that are less similar than this to a term are other words."""

IMPORTANCE_BONUS = 0.05
RECENCY_BONUS = 0.03
"""The most that importance and that recency add to a score. The words of the query add at most 1."""

NEIGHBOUR_SHARE = 0.25
"""A message gets this share of the parts `text` and `vector` of its better neighbour, the message before or after."""

VECTOR_SHARE = 0.5
"""What the meaning counts of the score of a message, if vectors were compared; the words count the rest."""

_SATURATION = 1.2
_LENGTH = 0.5  # how much a long text is discounted, from 0 to 1
_FUZZY_CHARS = 5  # shorter words have too few trigrams to be similar to each other


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may answer a query.

    Attributes:
        source: Its source, such as `memory:<id>`.
        text: The text.
        importance: From 0 to 1; None if it has none.
        last_seq: The last message that it is about; 0 if it is about no message of the line.
        recency: From 0 to 1; 1 is the newest message of its line.
        spoken_in: Of a message: the id of its line, on which `last_seq` is its seq; otherwise None.
        similarity: Of a message: the cosine of its vector and that of the query; None if it has none.

    """

    source: str
    text: str
    importance: float | None = None
    last_seq: int = 0
    recency: float = 0.0
    spoken_in: Hashable | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A text that answers a query.

    Attributes:
        source: Its source.
        parts: What its words (`text`), its meaning (`vector`, if vectors were compared), its neighbours, its importance
            and its recency add to the score.

    """

    source: str
    parts: Mapping[str, float]

    @property
    def score(self) -> float:
        """The sum of the parts; the best words and the best meaning give 1."""
        return sum(self.parts.values())


def rank(
    terms: Sequence[str],
    candidates: Sequence[Candidate],
    *,
    total: int,
    stem: Callable[[str], str] | None = None,
    lowest: float | None = None,
) -> list[Scored]:
    """Return the candidates that have a term of the query, a similar word or a similar meaning, best first.

    Vectors were compared if a candidate has a similarity. The most similar message gets VECTOR_SHARE for it, and one
    with the similarity `lowest` gets nothing. Texts that are no messages have no vectors: what their meaning would get
    depends on how much of the query they have, so that one frequent word does not outdo a message with the meaning.

    Args:
        terms: The terms of the query, each once.
        candidates: Texts with different sources.
        total: How many texts were searched, at least the number of candidates.
        stem: Returns the stem of a word in the language of the chat; None compares words as they are.
        lowest: The lowest similarity of all messages that were compared; by default that of the candidates. The cosines
            of some models differ little, so a score needs to know it.

    """
    if stem is not None:
        terms = list(dict.fromkeys(map(stem, terms)))
    counts = [_count(one.text, terms, stem) for one in candidates]
    near = SimilarTerms(terms).find_near(set().union(*counts))
    credits = [_credit(terms, one, near) for one in counts]
    found = [sum(1 for credit in credits if term in credit.shares) for term in terms]
    rarity = {term: math.log1p((total - count + 0.5) / (count + 0.5)) for term, count in zip(terms, found, strict=True)}
    mean_words = sum(credit.words for credit in credits) / max(len(credits), 1) or 1.0
    raw = [credit.weigh(rarity, mean_words) for credit in credits]
    best = max(raw, default=0.0) or 1.0
    meant = _Meanings.of(candidates, lowest)
    own = [
        meant.weigh(value / best, one, credit.find_coverage(rarity))
        for one, value, credit in zip(candidates, raw, credits, strict=True)
    ]
    by_place = {
        (one.spoken_in, one.last_seq): sum(parts.values())
        for one, parts in zip(candidates, own, strict=True)
        if one.spoken_in is not None
    }
    scored = [
        Scored(one.source, _add_bonuses(parts, one, by_place))
        for one, parts in zip(candidates, own, strict=True)
        if parts["text"] > 0 or one.similarity is not None
    ]
    places = {one.source: one.last_seq for one in candidates}
    return sorted(scored, key=lambda one: (-one.score, -places[one.source], one.source))


def find_similarities(found: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """Return the similarity by source; the highest one of a text that was found by several parts."""
    similarities: dict[str, float] = {}
    for source, value in found:
        if value is not None:
            similarities[source] = max(value, similarities.get(source, value))
    return similarities


def similarity(one: str, other: str) -> float:
    """Return the share of the trigrams that two words have in common, from 0 to 1."""
    mine, others = _trigrams(one), _trigrams(other)
    return len(mine & others) / len(mine | others)


@dataclass(frozen=True, slots=True)
class _Credit:
    """What a text has of the terms.

    Attributes:
        words: The number of its words.
        shares: By term, how often the text has it; a similar word counts in part.

    """

    words: int
    shares: Mapping[str, float]

    def weigh(self, rarity: Mapping[str, float], mean_words: float) -> float:
        """Return what the terms add up to."""
        room = _SATURATION * (1 - _LENGTH + _LENGTH * self.words / mean_words)
        return sum(rarity[term] * count / (count + room) for term, count in self.shares.items())

    def find_coverage(self, rarity: Mapping[str, float]) -> float:
        """Return how much of the query the text has, from 0 to 1: the share of the rarity of all terms."""
        having = sum(rarity[term] * min(share, 1.0) for term, share in self.shares.items())
        return having / (sum(rarity.values()) or 1.0)


@dataclass(frozen=True, slots=True)
class _Meanings:
    """The lowest and the highest similarity; None if no vectors were compared."""

    span: tuple[float, float] | None

    @classmethod
    def of(cls, candidates: Sequence[Candidate], lowest: float | None) -> "_Meanings":
        known = [one.similarity for one in candidates if one.similarity is not None]
        return cls((min(known if lowest is None else (*known, lowest)), max(known)) if known else None)

    def weigh(self, text: float, one: Candidate, coverage: float) -> dict[str, float]:
        """Return the parts of a score for the words and for the meaning; `text` and `coverage` are from 0 to 1."""
        if self.span is None:
            return {"text": text}
        if one.spoken_in is None:
            return {"text": (1 - VECTOR_SHARE + VECTOR_SHARE * coverage) * text, "vector": 0.0}
        low, high = self.span
        near = 0.0 if one.similarity is None else (one.similarity - low) / (high - low) if high > low else 1.0
        return {"text": (1 - VECTOR_SHARE) * text, "vector": VECTOR_SHARE * near}


def edges_of(word: str) -> tuple[str, ...]:
    """Return the beginning and the end of a word; nothing of a word that is too short to be similar to another."""
    return (word[:3], word[-3:]) if len(word) >= _FUZZY_CHARS else ()


Near = Mapping[str, Sequence[tuple[str, float]]]
"""By term, the words that are similar to it, with the similarity; a term without such words is missing."""


class SimilarTerms(dict[str, Sequence[tuple[str, float]]]):
    """By word, the terms that it is similar to, but not equal to, with the similarity; computed at the first use.

    Attributes:
        edges: The beginnings and ends of the terms (`edges_of`). A similar word has one of them.

    """

    def __init__(self, terms: Sequence[str]) -> None:
        super().__init__()
        self._terms = [term for term in terms if len(term) >= _FUZZY_CHARS]
        self.edges = {edge for term in self._terms for edge in edges_of(term)}

    def find_near(self, words: Iterable[str]) -> Near:
        """Return the similar words of each term."""
        near: dict[str, list[tuple[str, float]]] = {}
        for word in words:
            if word[:3] in self.edges or word[-3:] in self.edges:
                for term, likeness in self[word]:
                    near.setdefault(term, []).append((word, likeness))
        return near

    def __missing__(self, word: str) -> Sequence[tuple[str, float]]:
        found: list[tuple[str, float]] = []
        if len(word) >= _FUZZY_CHARS and (word[:3] in self.edges or word[-3:] in self.edges):
            near = [(term, similarity(term, word)) for term in self._terms if term != word]
            found = [(term, likeness) for term, likeness in near if likeness >= LEAST_SIMILARITY]
        self[word] = found
        return found


def _count(text: str, terms: Sequence[str], stem: Callable[[str], str] | None) -> Mapping[str, int]:
    """Return how often a text has each of its words, or the stems of those that may be a term."""
    return count_words(text) if stem is None else Counter(stem_likely(list_words(text), terms, stem))


def _credit(terms: Sequence[str], counts: Mapping[str, int], near: Near) -> _Credit:
    shares: dict[str, float] = {}
    for term in terms:
        if term in counts:
            shares[term] = counts[term]
        elif term in near:
            share = max(likeness * counts.get(word, 0) for word, likeness in near[term])
            if share:
                shares[term] = share
    return _Credit(sum(counts.values()), shares)


@lru_cache(maxsize=8_192)
def _trigrams(word: str) -> frozenset[str]:
    padded = f"  {word} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))


def _add_bonuses(
    parts: Mapping[str, float], one: Candidate, by_place: Mapping[tuple[Hashable | None, int], float]
) -> dict[str, float]:
    before, after = ((one.spoken_in, one.last_seq + step) for step in (-1, 1))
    return {
        **parts,
        "neighbours": NEIGHBOUR_SHARE * max(by_place.get(before, 0.0), by_place.get(after, 0.0)),
        "importance": IMPORTANCE_BONUS * (one.importance or 0.0),
        "recency": RECENCY_BONUS * min(one.recency, 1.0),
    }
