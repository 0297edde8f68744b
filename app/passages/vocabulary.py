"""Counts, for each of some words, how many messages of a line contain it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from app.kit.db import Connection
from app.kit.planner import NOT_BY_INDEX
from app.messages.rules import IS_NOT_DELETED, IS_OF_STORY
from app.passages.keys import hash_keys
from app.passages.lookup import write_outside_index
from app.passages.words import drop_accents, split_words

MOST_TEXTS = 500
"""How many messages in the index are considered.

Outside the index, the messages with the last 500 seqs of the line are considered, and those that have changed.
"""

MOST_CHARS = 2_000_000
"""How many characters of the messages that are not in the index are read, in all of them together.

Each message gets an equal share: its first 20,000 characters if there are 100 messages or fewer.
"""

# One scan of the index for all words: a scan for each of some hundred words would take ten times as long. The scan ends
# after MOST_TEXTS rows, so it misses a word that is only in later rows. Therefore each of the few words that are passed
# as terms gets a scan of its own.
IN_INDEX = f"""
    SELECT found.key, count(*) AS texts FROM (
        SELECT p.keys FROM passages p
        WHERE (p.chat_key = $1) {NOT_BY_INDEX} AND p.keys && $2::int[] LIMIT {MOST_TEXTS}) AS p
    CROSS JOIN LATERAL unnest(p.keys) AS found (key) JOIN unnest($2::int[]) AS wanted (key) ON wanted.key = found.key
    GROUP BY found.key
    UNION ALL
    SELECT term.key, p.texts FROM unnest($3::int[]) AS term (key) CROSS JOIN LATERAL (
        SELECT count(*) AS texts FROM (
            SELECT FROM passages p
            WHERE (p.chat_key = $1) {NOT_BY_INDEX} AND p.keys @> ARRAY[term.key] LIMIT {MOST_TEXTS}) AS p
    ) AS p"""  # noqa: S608 - of constants

_OUTSIDE = f"""
    SELECT left(m.content, ({MOST_CHARS} / greatest(count(*) OVER (), 100))::int) AS content, m.name FROM chats c
    CROSS JOIN LATERAL ({write_outside_index(f"{IS_NOT_DELETED} AND {IS_OF_STORY}", MOST_TEXTS)}) AS m
    WHERE c.chat_key = $1 AND c.line_id = $2"""  # noqa: S608 - of constants


async def count_texts(
    connection: Connection, line: tuple[UUID, UUID], terms: Sequence[str], words: Sequence[str]
) -> Counter[str]:
    """Return, for each of these folded words, how many of the considered messages have it, with whatever accents.

    The limit for messages of the index applies to all `words` together, and to each of `terms`. A term also counts
    if it is in the speaker's name of a message outside the index. A word that a message had in a former text, or on
    another line, may be counted.

    Args:
        connection: A connection.
        line: The chat's key, and the line.
        terms: Some words, each of which is looked up for itself.
        words: Up to some thousand other words.

    """
    chat_key, _ = line
    by_number: dict[int, list[str]] = {}
    for word in dict.fromkeys([*words, *terms]):
        for number in hash_keys(chat_key, _forms_of([word])):
            by_number.setdefault(number, []).append(word)
    numbers = [hash_keys(chat_key, _forms_of(some)) for some in (words, terms)]
    counts = Counter[str]()
    for row in await connection.fetch(IN_INDEX, chat_key, *numbers):
        for word in by_number[row["key"]]:
            counts[word] = max(counts[word], row["texts"])  # a text can have a word as two keys, one without accents
    outside = [tuple(row) for row in await connection.fetch(_OUTSIDE, *line)]
    return counts + await asyncio.to_thread(_count, outside, frozenset(terms), frozenset((*words, *terms)))


def _forms_of(words: Sequence[str]) -> list[str]:
    """Return the words without accents, and as they are: in an index of a former version, all words have accents."""
    return list(dict.fromkeys(form for word in words for form in (drop_accents(word), word)))


def _count(texts: Sequence[tuple[str, str | None]], terms: frozenset[str], words: frozenset[str]) -> Counter[str]:
    """Return how many texts have each word; a term also counts if it is in the name given with the text.

    Accents do not count. `words` includes the terms.
    """
    bare_words, bare_terms = {drop_accents(word) for word in words}, {drop_accents(term) for term in terms}
    counts = Counter[str]()
    for text, name in texts:
        counts.update(
            bare_words.intersection(map(drop_accents, split_words(text)))
            | bare_terms.intersection(map(drop_accents, split_words(name or "")))
        )
    return Counter({word: counts[bare] for word in words if (bare := drop_accents(word)) in counts})
