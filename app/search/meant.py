"""Finds the words that are meant by misspelt terms of a query."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from app.kit.db import Connection
from app.passages.vocabulary import count_texts
from app.passages.words import is_topical, split_words
from app.search.ranking import find_unmatched
from app.search.spelling import can_correct, choose_nearest, list_neighbours
from app.search.stems import stemmer_of

MOST_CORRECTED: Final = 4
"""At most this many terms of a query are corrected, the first ones."""


async def find_words_meant(
    connection: Connection,
    line: tuple[UUID, UUID],
    terms: Sequence[str],
    texts: Sequence[str],
    language: str | None,
    names: Iterable[str],
) -> dict[str, str]:
    """Return by misspelt term the word of the line's messages that is probably meant.

    A term is corrected only if none of `texts` has the word or a similar one, no message of the line that is considered
    (`count_texts`) has the word, and it is part of no name of the chat.

    Args:
        connection: A connection.
        line: The chat's key, and the line.
        terms: The terms of a query.
        texts: The texts that a search for the terms has found, with their speakers.
        language: The language of the chat (BCP 47), if known. A word that says nothing in it (`is_topical`) is neither
            similar nor meant.
        names: The names of the chat's characters and of its user.

    """
    of_names = {word for name in names for word in split_words(name)}
    unmatched = await asyncio.to_thread(find_unmatched, terms, texts, stem=stemmer_of(language), language=language)
    misspelt = [term for term in unmatched if can_correct(term) and term not in of_names][:MOST_CORRECTED]
    if not misspelt:
        return {}
    words = dict.fromkeys(word for term in misspelt for word in list_neighbours(term) if is_topical(word, language))
    known = await count_texts(connection, line, misspelt, list(words))
    meant = {term: choose_nearest(term, known) for term in misspelt if not known[term]}
    return {term: word for term, word in meant.items() if word is not None}
