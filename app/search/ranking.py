"""Ranks texts by how well they answer a query. Pure.

A text scores for each term of the query that it has, more for rare terms, and a little less if it is long (BM25 with
OR semantics). A word that is similar to a term (trigrams, as in `pg_trgm`) counts in part, so that typos and inflected
forms are found. Importance and recency only decide between texts that answer about equally well: as factors they would
replace what is asked for by what is new.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.search.words import list_words

LEAST_SIMILARITY = 0.45
"""Words that are less similar than this to a term are other words."""

IMPORTANCE_BONUS = 0.05
RECENCY_BONUS = 0.03
"""The most that importance and recency add to a score, of which the words are up to 1."""

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

    """

    source: str
    text: str
    importance: float | None = None
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class Scored:
    """A text that answers a query.

    Attributes:
        source: Its source.
        parts: What its words, words similar to them, importance and recency add to the score.

    """

    source: str
    parts: Mapping[str, float]

    @property
    def score(self) -> float:
        """The sum of the parts; the words of the best text alone give 1."""
        return sum(self.parts.values())


def rank(terms: Sequence[str], candidates: Sequence[Candidate], *, total: int, head_seq: int) -> list[Scored]:
    """Return the candidates that have a term of the query, or a similar word, best first.

    Args:
        terms: The terms of the query, each once.
        candidates: Texts with different sources.
        total: How many texts were searched, at least the number of candidates.
        head_seq: The newest seq; what is about it is most recent.

    """
    similar_terms = _SimilarTerms(terms)
    credits = [_credit(terms, list_words(one.text), similar_terms) for one in candidates]
    found = [sum(1 for credit in credits if term in credit.shares) for term in terms]
    rarity = {term: math.log1p((total - count + 0.5) / (count + 0.5)) for term, count in zip(terms, found, strict=True)}
    mean_words = sum(credit.words for credit in credits) / max(len(credits), 1) or 1.0
    raw = [credit.weigh(rarity, mean_words) for credit in credits]
    best = max((exact + similar for exact, similar in raw), default=0.0)
    scored = [
        Scored(one.source, _parts(exact / best, similar / best, one, head_seq))
        for one, (exact, similar) in zip(candidates, raw, strict=True)
        if exact + similar > 0
    ]
    places = {one.source: one.last_seq for one in candidates}
    return sorted(scored, key=lambda one: (-one.score, -places[one.source], one.source))


def similarity(one: str, other: str) -> float:
    """Return the share of the trigrams that two words have in common, from 0 to 1."""
    mine, others = _trigrams(one), _trigrams(other)
    return len(mine & others) / len(mine | others)


@dataclass(frozen=True, slots=True)
class _Credit:
    """What a text has of the terms.

    Attributes:
        words: The number of its words.
        shares: By term, how often the text has it, and whether it has the term itself; a similar word counts in part.

    """

    words: int
    shares: Mapping[str, tuple[float, bool]]

    def weigh(self, rarity: Mapping[str, float], mean_words: float) -> tuple[float, float]:
        """Return what the terms themselves, and the words similar to terms, add up to."""
        exact = similar = 0.0
        room = _SATURATION * (1 - _LENGTH + _LENGTH * self.words / mean_words)
        for term, (count, is_exact) in self.shares.items():
            value = rarity[term] * count / (count + room)
            if is_exact:
                exact += value
            else:
                similar += value
        return exact, similar


class _SimilarTerms(dict[str, Sequence[tuple[str, float]]]):
    """By word, the terms that it is similar to, but not equal, with the similarity; computed at the first use."""

    def __init__(self, terms: Sequence[str]) -> None:
        super().__init__()
        self._terms = [term for term in terms if len(term) >= _FUZZY_CHARS]
        self._edges = {edge for term in self._terms for edge in (term[:3], term[-3:])}

    def __missing__(self, word: str) -> Sequence[tuple[str, float]]:
        found: list[tuple[str, float]] = []
        if len(word) >= _FUZZY_CHARS and (word[:3] in self._edges or word[-3:] in self._edges):
            near = [(term, similarity(term, word)) for term in self._terms if term != word]
            found = [(term, likeness) for term, likeness in near if likeness >= LEAST_SIMILARITY]
        self[word] = found
        return found


def _credit(terms: Sequence[str], words: Sequence[str], similar_terms: _SimilarTerms) -> _Credit:
    counts = Counter(words)
    shares: dict[str, tuple[float, bool]] = {term: (counts[term], True) for term in terms if term in counts}
    for word, count in counts.items():
        for term, likeness in similar_terms[word]:
            held, is_exact = shares.get(term, (0.0, False))
            if not is_exact and likeness * count > held:
                shares[term] = (likeness * count, False)
    return _Credit(len(words), shares)


@lru_cache(maxsize=8_192)
def _trigrams(word: str) -> frozenset[str]:
    padded = f"  {word} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))


def _parts(exact: float, similar: float, one: Candidate, head_seq: int) -> dict[str, float]:
    recency = one.last_seq / head_seq if head_seq else 0.0
    return {
        "text": exact,
        "trigrams": similar,
        "importance": IMPORTANCE_BONUS * (one.importance or 0.0),
        "recency": RECENCY_BONUS * min(recency, 1.0),
    }
