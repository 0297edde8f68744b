"""What the database itself says: keys and indexes in its catalog, updates in its statistics."""

from typing import Any

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Connection
from app.kit.ids import chat_key
from app.kit.settings import Settings
from app.main import create_app
from app.registry import LAYERS
from tests.conftest import client_of
from tests.talk import append, put, said, talk

OF_THE_SERVICE = {"alembic_version", "keys", "secrets", "model_usage", "workers", "embedding_models"}
"""Tables of the service itself: which schema this is, who may call, what signs tokens, what the model was asked, which
workers run, and which models made vectors.
"""

WITHOUT_WORDS = {
    "alembic_version": {"version_num"},
    "bindings": {"layer", "tool", "asked_id", "message_id"},
    "chats": {"line_status", "tenant", "chat_id", "user_id", "time_zone", "language"},
    "consolidations": {"origin", "model", "prompt_version"},
    "diary_entries": {"origin", "model", "prompt_version"},
    "embedding_models": {"name"},
    "keys": {"key_id", "tenant", "scopes"},
    "memos": {"first_message_id", "status", "origin", "model", "prompt_version"},
    "messages": {"message_id", "role", "kind", "tool_call_id", "hidden_by"},
    "model_usage": {"tenant", "layer"},
    "narrative_versions": {"layer", "origin", "model", "prompt_version"},
    "passages": {"message_id"},
    "vectors": {"message_id"},
    "revisions": {"role"},
    "scenes": {"closed_by", "status", "origin", "model", "prompt_version"},
    "secrets": {"name"},
    "sessions": {"reason"},
    "statements": {"kind", "origin", "operation", "category", "chosen"},
    "teachings": {"layer"},
    "tool_calls": {"outcome"},
    "work": {"layer", "tenant", "user_id"},
}
"""Columns of text that hold ids, keys, roles and states, and no words of a conversation."""


async def test_there_are_no_statistics_of_words(connection: Connection) -> None:
    """ANALYZE stores frequent values and a histogram, which erasing a chat does not delete."""
    columns = await connection.fetch(
        """
        SELECT c.relname AS table, a.attname AS column, coalesce(a.attstattarget, -1) AS samples
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_index i ON i.indexrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
            AND (c.relkind = 'r' OR i.indexprs IS NOT NULL)
            AND a.atttypid = ANY('{text, varchar, text[], varchar[], jsonb, jsonb[], json, tsvector}'::regtype[])
        """
    )
    sampled = {(row["table"], row["column"]) for row in columns if row["samples"]}
    assert sampled == {(table, column) for table, names in WITHOUT_WORDS.items() for column in names}


async def test_every_row_lies_under_a_line_a_user_or_a_tenant(connection: Connection) -> None:
    """A table of lines has a primary key that begins (chat_key, line_id), one of lines, users and tenants (owner_key,
    line_id), where users and tenants have no line: then erasing a chat or a user finds its rows.
    """
    tables = await _list_tables(connection)
    known = {"chats", "messages", "swipes", "revisions", "source_lines", "work"}
    known |= {table.name for layer in LAYERS for table in layer.tables}
    assert set(tables) >= OF_THE_SERVICE | known
    begins_otherwise = {
        name for name, (key, _) in tables.items() if key[:2] not in (["chat_key", "line_id"], ["owner_key", "line_id"])
    }
    assert begins_otherwise == OF_THE_SERVICE


async def test_unique_indexes_begin_with_the_key_of_the_owner(connection: Connection) -> None:
    """One without it could not be kept where the rows lie on several machines."""
    tables = await _list_tables(connection)
    unique = await connection.fetch(
        """
        SELECT c.relname AS name, a.attname::text AS first
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace AND NOT c.relname = ANY($1)
        """,
        OF_THE_SERVICE,
    )
    assert len(unique) >= 6
    assert [row["name"] for row in unique if row["first"] != tables[row["name"]][0][0]] == []


async def test_no_table_refers_to_another(connection: Connection) -> None:
    assert await connection.fetch("SELECT conname FROM pg_constraint WHERE contype = 'f'") == []


async def test_columns_that_an_append_changes_are_in_no_index(
    api: httpx.AsyncClient, connection: Connection, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, user_id="mira")
    before = await _row(connection, tenant)
    for first in range(1, 49, 8):
        clock.step(2)
        await dispatcher.drain()
        await append(api, talk(first, first + 7))
    after = await _row(connection, tenant)
    changed = {name for name in before if before[name] != after[name]}
    assert changed >= {"head_seq", "last_active_at", "anchor_seq", "last_cut", "cursors", "context_cache"}
    assert changed & await _indexed(connection, "chats") == set()


async def test_appends_leave_the_chats_row_in_its_page(fresh_database_url: str, clock: SteppedClock) -> None:
    app = create_app(Settings(database_url=fresh_database_url, _env_file=None), clock=clock)
    async with client_of(app, None) as api:
        await put(api, user_id="mira", system_prompt="You are Kai. " * 50)
        before = await _updates(app)
        for n in range(1, 101):
            clock.step(1)
            await append(api, [said(n)])
        updates, hot = [now - then for now, then in zip(await _updates(app), before, strict=True)]
    await app.state.database.close()
    assert updates >= 100
    assert hot == updates


async def test_chats_leave_room_in_their_pages(connection: Connection) -> None:
    options = await connection.fetchval("SELECT reloptions FROM pg_class WHERE oid = 'chats'::regclass")
    assert options == ["fillfactor=70"]


async def test_a_constraint_is_named_after_its_table_and_kind(connection: Connection) -> None:
    rows = await connection.fetch(
        """
        SELECT k.conname::text AS name, c.relname::text AS relation, k.contype::text AS kind
        FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
        WHERE c.relnamespace = 'public'::regnamespace AND k.contype IN ('p', 'c') AND c.relname <> 'alembic_version'
        """
    )
    prefixes = {"p": "pk", "c": "ck"}
    assert [
        row["name"] for row in rows if not row["name"].startswith(f"{prefixes[row['kind']]}_{row['relation']}")
    ] == []


async def test_the_database_rejects_what_the_service_never_writes(
    api: httpx.AsyncClient, connection: Connection, tenant: str
) -> None:
    await append(api, talk(1, 8))
    key = chat_key(tenant, "c")
    for impossible in (
        "UPDATE chats SET anchor_seq = head_seq + 2",
        "UPDATE chats SET anchor_seq = 0",
        "UPDATE chats SET line_status = 'other'",
        "UPDATE messages SET role = 'bot'",
        "UPDATE messages SET kind = 'dream'",
        "UPDATE messages SET importance = 2",
        "UPDATE messages SET selected_swipe = -1",
        "UPDATE chats SET checkpoint = 'a name without being one'",
        "UPDATE chats SET line_status = 'checkpoint'",
        "UPDATE memos SET last_seq = first_seq - 1",
        "UPDATE memos SET first_seq = NULL, last_seq = NULL",
        "UPDATE work SET attempts = -1",
        "UPDATE work SET lease = work_id",
        "UPDATE work SET user_id = 'mira'",
    ):
        key_column = "owner_key" if "UPDATE work" in impossible else "chat_key"
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(f"{impossible} WHERE {key_column} = $1", key)


async def _list_tables(connection: Connection) -> dict[str, tuple[list[str], bool]]:
    """The columns of each table's primary key, in its order, and whether the table has a `line_id`."""
    rows = await connection.fetch(
        """
        SELECT c.relname AS name, ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS o (num, place)
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = o.num ORDER BY place) AS key,
            EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'line_id') AS has_lines
        FROM pg_class c LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p'
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
        """
    )
    return {row["name"]: (row["key"], row["has_lines"]) for row in rows}


async def _row(connection: Connection, tenant: str) -> dict[str, Any]:
    row = await connection.fetchrow("SELECT * FROM chats WHERE chat_key = $1", chat_key(tenant, "c"))
    assert row is not None
    return dict(row)


async def _indexed(connection: Connection, table: str) -> set[str]:
    """The columns that an index of the table holds, or is partial by."""
    rows = await connection.fetch(
        """
        SELECT a.attname::text AS name FROM pg_index i
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) WHERE i.indrelid = $1::regclass
        UNION
        SELECT a.attname::text FROM pg_depend d
            JOIN pg_index i ON i.indexrelid = d.objid AND i.indrelid = d.refobjid
            JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE d.refobjid = $1::regclass
        """,
        table,
    )
    found = {row["name"] for row in rows}
    assert found >= {"chat_key", "line_status"}, "keys and conditions are seen"
    return found


async def _updates(app: FastAPI) -> tuple[int, int]:
    """How often a chat's row was updated so far, and how often within its page."""
    async with app.state.database.raw() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        row = await connection.fetchrow(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'chats'"
        )
    return row["n_tup_upd"], row["n_tup_hot_upd"]
