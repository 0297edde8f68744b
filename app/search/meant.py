"""Finds the words that are meant by misspelt terms of a query."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from app.chats.characters import word_spoken
from app.kit.db import Connection
from app.passages.vocabulary import count_texts
from app.passages.words import drop_accents, is_topical, split_words
from app.search.cutting import cut_texts
from app.search.ranking import find_unmatched
from app.search.spelling import can_correct, choose_nearest, list_neighbours
from app.search.stems import stemmer_of

MOST_CORRECTED: Final = 4
"""At most this many terms of a query are corrected, the first ones."""


async def find_words_meant(
    connection: Connection,
    line: tuple[UUID, UUID],
    terms: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    *,
    language: str | None,
    names: Iterable[str],
    speakers: Mapping[str, str],
) -> dict[str, str]:
    """Return for each misspelt term the word of the line's messages that is probably meant.

    A term is corrected only if `can_correct` is true for it, it is not part of a name of the chat, no text of `rows`
    has it or a similar word, and none of the line's messages that `count_texts` considers has it. Texts are read only
    for terms that meet the first two conditions.

    Args:
        connection: A connection.
        line: The chat's key, and the line.
        terms: The terms of a query.
        rows: What a search for the terms has found, with the columns `text`, `role` and `name` of `Texts`.
        language: The language of the chat (BCP 47), if known. A frequent word of this language (`is_frequent`) counts
            neither as similar to a term nor as the word that is meant.
        names: The names of the chat's characters and of its user.
        speakers: For each role, the name that a message gets if it has none of its own.

    """
    of_names = {drop_accents(word) for name in names for word in split_words(name)}
    possible = [term for term in terms if can_correct(term) and drop_accents(term) not in of_names]
    if not possible:
        return {}
    misspelt = (await asyncio.to_thread(_find_unmatched, possible, rows, language, speakers))[:MOST_CORRECTED]
    if not misspelt:
        return {}
    words = dict.fromkeys(word for term in misspelt for word in list_neighbours(term) if is_topical(word, language))
    known = await count_texts(connection, line, misspelt, list(words))
    meant = {term: choose_nearest(term, known) for term in misspelt if not known[term]}
    return {term: word for term, word in meant.items() if word is not None}


def _find_unmatched(
    terms: Sequence[str], rows: Sequence[Mapping[str, Any]], language: str | None, speakers: Mapping[str, str]
) -> list[str]:
    texts = [word_spoken(row["text"], row["role"], row["name"], speakers) for row in rows]
    return find_unmatched(terms, cut_texts(texts), stem=stemmer_of(language), language=language)
