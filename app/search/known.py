"""The memories that a line knows, remembered in this process with an index of their words.

Only texts of layers that set `Layer.documents_change_with` are remembered; so far, only the layer of memories sets it.
Most memories change rarely, but a chat can have a thousand. To read and compare them for each context would take most
of the time of recall.
"""

import heapq
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from app.layers.documents import Document, Fading
from app.layers.recently_used import RecentlyUsed
from app.passages.lookup import digest_text
from app.passages.words import count_words, drop_accents, list_bare, stem_likely
from app.search.ranking import SimilarTerms, edges_of

MAX_CHARS: Final = 4_000_000
"""How many characters the remembered texts have at most, all together."""

MAX_LIKELY: Final = 50
"""How many of the texts are ranked because of their words: those with the most and the rarest words of the query."""

MAX_AGE: Final = timedelta(hours=1)
"""After this time texts are read again, because texts may slowly change with time (`Layer.documents_change_with`)."""


class KnownTexts(NamedTuple):
    """Texts of a line, as a character sees them.

    Attributes:
        texts: The texts.
        digests: Their digests (`passages.lookup.digest_text`), by which their vectors are found.
        indexes: For each word, the indexes in `texts` of the texts that contain the word.
        words: For each beginning and each end of a word (`edges_of`), the words that have it; for a word without its
            accents, the words with them.

    """

    texts: Sequence[Document]
    digests: Sequence[bytes]
    indexes: Mapping[str, Sequence[int]]
    words: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, texts: Iterable[Document]) -> "KnownTexts":
        """Return texts with their index."""
        listed = list(texts)
        indexes: dict[str, list[int]] = {}
        for index, one in enumerate(listed):
            for word in count_words(one.text):
                indexes.setdefault(word, []).append(index)
        words: dict[str, list[str]] = {}
        for word in indexes:
            for edge in edges_of(word):
                words.setdefault(edge, []).append(word)
            if (bare := drop_accents(word)) != word:
                words.setdefault(bare, []).append(word)
        return cls(listed, [digest_text(one.text) for one in listed], indexes, words)

    def find_likely(
        self,
        terms: Sequence[str],
        most: int,
        *,
        left_out: frozenset[str] = frozenset(),
        stem: Callable[[str], str] | None = None,
    ) -> list[int]:
        """Return the indexes of at most `most` texts: those that have the most and the rarest terms, or similar words.

        Texts with the sources in `left_out` are not returned. With `stem`, words with the same stem are the same word.
        """
        forms = self._find_forms(terms, stem)
        similar = SimilarTerms(terms)
        edges = (*similar.edges, *similar.bare)
        near = similar.find_near({*similar.bare, *(word for edge in edges for word in self.words.get(edge, ()))})
        likelihoods = [0.0] * len(self.texts)
        for term in terms:
            words = dict.fromkeys((term, *forms.get(term, ()), *(word for word, _ in near.get(term, ()))))
            having = [self.indexes[word] for word in words if word in self.indexes]
            found = having[0] if len(having) == 1 else set().union(*having)
            if found:
                rarity = math.log1p(len(self.texts) / len(found))
                for index in found:
                    likelihoods[index] += rarity
        allowed = [
            (likelihood, index)
            for index, likelihood in enumerate(likelihoods)
            if likelihood and self.texts[index].source not in left_out
        ]
        return [index for _, index in heapq.nlargest(most, allowed)]

    def _find_forms(self, terms: Sequence[str], stem: Callable[[str], str] | None) -> dict[str, list[str]]:
        """Return by term the words of the texts that have its stem, also without accents; empty without `stem`."""
        if stem is None:
            return {}
        stems = {term: stem(term) for term in terms}
        by_form: dict[str, list[str]] = {}
        for word, form in zip(
            self.indexes, stem_likely(self.indexes, stems.values(), stem, list_bare(terms, stem)), strict=True
        ):
            by_form.setdefault(form, []).append(word)
        bare = {term: next(iter(list_bare([term], stem)), "") for term in terms}
        return {term: [*by_form.get(one, []), *by_form.get(bare[term], [])] for term, one in stems.items()}

    def find_near(
        self, similarities: Mapping[bytes, float], most: int, *, left_out: frozenset[str] = frozenset()
    ) -> list[int]:
        """Return the indexes of at most `most` texts, those nearest in meaning; `similarities` are cosines by digest.

        Texts with the sources in `left_out` are not returned.
        """
        near = [
            (similarities[digest], index)
            for index, digest in enumerate(self.digests)
            if digest in similarities and self.texts[index].source not in left_out
        ]
        return [index for _, index in heapq.nlargest(most, near)]


class Viewed(NamedTuple):
    """The chat and the character for which texts are read, and the state of the data.

    Attributes:
        chat_key: The chat's key.
        character: The character whose prompt is made, if known.
        tag: The revision numbers and the time that the texts depend on. If one differs, the texts may have changed.
        fading: How the age of a text affects the search (`Fading`).

    """

    chat_key: UUID
    character: str | None
    tag: Hashable
    fading: Fading = "archives"


class _Remembered(NamedTuple):
    tag: Hashable
    read_at: datetime
    texts: KnownTexts


_remembered = RecentlyUsed[tuple[UUID, str | None, Fading], _Remembered](MAX_CHARS)


def find_remembered(viewed: Viewed, now: datetime) -> KnownTexts | None:
    """Return the remembered texts; None if there are none, or if they may be out of date."""
    found = _remembered.find((viewed.chat_key, viewed.character, viewed.fading))
    if found is None or found.tag != viewed.tag or abs(now - found.read_at) > MAX_AGE:
        return None
    return found.texts


def remember_texts(viewed: Viewed, rows: Iterable[Mapping[str, Any]], now: datetime) -> KnownTexts:
    """Remember the texts of rows with the columns of `Document`, and return them."""
    known = KnownTexts.of(Document(*(row[name] for name in Document._fields)) for row in rows)
    size = sum(len(one.text) for one in known.texts) + 1
    _remembered.keep((viewed.chat_key, viewed.character, viewed.fading), _Remembered(viewed.tag, now, known), size)
    return known
