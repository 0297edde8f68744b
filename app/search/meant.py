"""Finds the words that are meant by misspelt terms of a query."""

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from app.kit.db import Connection
from app.passages.vocabulary import count_texts
from app.passages.words import is_topical
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
) -> dict[str, str]:
    """Return by misspelt term the word of the line's messages that is probably meant.

    A term is corrected only if none of `texts`, which a search for the terms has found, has the word or a similar one.
    So a word that a text has is never taken for another one. `language` is that of the chat (BCP 47), if known: a word
    that says nothing in it (`is_topical`) is neither similar nor meant.
    """
    unmatched = await asyncio.to_thread(find_unmatched, terms, texts, stem=stemmer_of(language), language=language)
    misspelt = [term for term in unmatched if can_correct(term)][:MOST_CORRECTED]
    if not misspelt:
        return {}
    words = dict.fromkeys(word for term in misspelt for word in list_neighbours(term) if is_topical(word, language))
    known = await count_texts(connection, line, list(words))
    return {term: word for term in misspelt if (word := choose_nearest(term, known)) is not None}
