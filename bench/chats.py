"""The chats of the benchmark: their texts, and a fast way to create many of them.

The service's own functions make two patterns, one of 20 messages and one of 200, with memos by the extractive
summariser. A chat of another size is the pattern of 200, repeated as often as needed by copying within PostgreSQL. Its
newest 200 messages, window and history are the same; only the older part is longer.

Contexts read every chat of a size. Appends of the service go to the first half of them, those of the floor to the
second, so neither finds the other's rows.
"""

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import orjson

from app.chats.chat_lock import ChatRef
from app.chats.schemas import ChatPut
from app.chats.service import put_chat
from app.demo.run import CONVERSATION
from app.dispatcher import Dispatcher
from app.kit.auth import DEFAULT_TENANT
from app.kit.clock import system_clock
from app.kit.db import Connection, Database, Table
from app.kit.ids import chat_key
from app.kit.job_context import JobContext
from app.kit.tokens import count_tokens
from app.messages.schemas import MessageIn
from app.messages.service import append_messages
from app.pipeline import open_database
from app.registry import LAYERS
from app.summarising.sentences import split_sentences
from bench.load import MARK

SHORT, LONG = 20, 200
"""The sizes of the patterns, in messages."""

CHATS = 32
"""The number of chats of each size for the service's appends; the floor has as many."""

MESSAGE_TOKENS = {SHORT: 172, LONG: 70}
"""Tokens of a message, by pattern, so that a context of either pattern has about 4,000 tokens."""

_PAIRS_AFTER = 8
"""Pairs after the last cut, so that the history has its maximum length, 32 messages."""


def chat_id(size: int, number: int) -> str:
    """Return the id of one of the chats of a size."""
    return f"chat-{size}-{number}"


def pattern_of(size: int) -> int:
    """Return the size of the pattern that a chat of `size` messages is copied from."""
    return SHORT if size == SHORT else LONG


def pair_of(rng: random.Random, tokens: int, mark: str = MARK.decode()) -> list[dict[str, str]]:
    """Return a message of the user and the reply; `mark` makes each text unique."""
    return [
        {"role": "user", "name": "Nell", "content": f"{mark} {_text(rng, tokens)}"},
        {"role": "assistant", "name": "Quill", "content": f"{mark} {_text(rng, tokens)}"},
    ]


def _text(rng: random.Random, tokens: int) -> str:
    """Return sentences of the demo's conversation that have `tokens` tokens or a few more."""
    text = ""
    while count_tokens(text) < tokens:
        text += rng.choice(_sentences()) + " "
    return text.rstrip()


@cache
def _sentences() -> Sequence[str]:
    messages = [orjson.loads(line) for line in CONVERSATION.read_bytes().splitlines()]
    return [
        "".join(sentence.clauses)
        for message in messages
        if "content" in message
        for sentence in split_sentences(message["content"])
    ]


async def make_patterns(database_url: str) -> None:
    """Write the two patterns through the service, and make their memos."""
    database = open_database(database_url, LAYERS, clock=system_clock, settle_s=0, notify=lambda: None, pool_size=8)
    try:
        for size, tokens in MESSAGE_TOKENS.items():
            rng = random.Random(size)
            pairs = [pair_of(rng, tokens, mark=f"({number})") for number in range(size // 2)]
            await _append_all(database, ChatRef(DEFAULT_TENANT, _pattern(size), _key(_pattern(size))), pairs)
        await Dispatcher(JobContext(database, system_clock), LAYERS, slots=4, poll_s=30).drain()
    finally:
        await database.close()


async def _append_all(database: Database, ref: ChatRef, pairs: Sequence[Sequence[dict[str, str]]]) -> None:
    first = [message for pair in pairs[:-_PAIRS_AFTER] for message in pair]
    async with database.unit_of_work() as db_session:
        await put_chat(db_session, ref, _PUT, now=system_clock())
    for messages in (first, *pairs[-_PAIRS_AFTER:]):
        given = [MessageIn.model_validate(message) for message in messages]
        async with database.unit_of_work() as db_session:
            await append_messages(db_session, ref, given, now=system_clock())


_PUT = ChatPut.model_validate(orjson.loads(CONVERSATION.read_bytes().splitlines()[0])["chat"])


async def copy_chat(connection: Connection, size: int, number: int) -> None:
    """Create a chat of `size` messages, a multiple of a pattern's size."""
    pattern = pattern_of(size)
    source, target, last = _key(_pattern(pattern)), _key(chat_id(size, number)), size // pattern - 1
    row = orjson.loads(await connection.fetchval("SELECT to_jsonb(c)::text FROM chats c WHERE chat_key = $1", source))
    row |= {"chat_key": str(target), "chat_id": chat_id(size, number)}
    await connection.execute(
        "INSERT INTO chats SELECT (jsonb_populate_record(NULL::chats, $1::jsonb)).*",
        orjson.dumps(_moved_on(row, last, pattern)).decode(),
    )
    await connection.execute(_COPY_MESSAGES, source, target, last, pattern)
    await connection.execute(_COPY_MEMOS, source, target, last, pattern, row["memo_count"])


_COUNTS = ("message_count", "turn_count", "token_count", "memo_count", "memo_number")


def _moved_on(row: dict[str, Any], times: int, by: int) -> dict[str, Any]:
    """Return the row of a chat with `times` more copies of the pattern, each `by` seqs long, before its messages."""
    seqs, memos = times * by, times * row["memo_count"]
    window = {
        part: [
            memo
            | {
                "number": memo["number"] + memos,
                "sort_key": memo["sort_key"] + 2 * seqs,
                "first_seq": memo["first_seq"] + seqs,
                "last_seq": memo["last_seq"] + seqs,
            }
            for memo in row["context_cache"].get("memos", {}).get(part, ())
        ]
        for part in ("memos", "pinned")
    }
    open_batch = row["cursors"]["memos"]
    return row | {
        **{name: row[name] * (times + 1) for name in _COUNTS},
        **{name: row[name] + seqs for name in ("head_seq", "anchor_seq")},
        "cursors": {"memos": open_batch | {"first_seq": open_batch["first_seq"] + seqs}},
        "context_cache": {"memos": window | {"gaps": []}},
    }


def _copying(table: str, changed: dict[str, str]) -> str:
    """Return a statement that copies the rows of chat $1 to chat $2, shifted by 0…$3 times $4 seqs."""
    columns = Table.metadata.tables[table].columns.keys()
    chosen = ", ".join(changed.get(column, f't."{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    return f"""INSERT INTO {table} ({names}) SELECT {chosen} FROM generate_series(0, $3::int) AS nth, {table} t
        WHERE t.chat_key = $1 ORDER BY nth, t.{"seq" if table == "messages" else "sort_key"}"""


_COPY_MESSAGES = _copying(
    "messages",
    {"chat_key": "$2::uuid", "seq": "t.seq + nth * $4::int", "message_id": "t.message_id || '-' || nth"},
)
_COPY_MEMOS = _copying(
    "memos",
    {
        "chat_key": "$2::uuid",
        "memo_id": "CASE WHEN nth = $3 THEN t.memo_id ELSE gen_random_uuid() END",
        "number": "t.number + nth * $5::int",
        "sort_key": "t.sort_key + 2 * nth * $4::int",
        "first_seq": "t.first_seq + nth * $4",
        "last_seq": "t.last_seq + nth * $4",
        "first_message_id": "t.first_message_id || '-' || nth",
    },
)


def _pattern(size: int) -> str:
    return f"pattern-{size}"


def _key(name: str) -> Any:
    return chat_key(DEFAULT_TENANT, name)
