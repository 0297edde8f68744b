"""A chat with a value in each table and column that a line has, and all of its rows."""

from typing import Any
from uuid import UUID

import httpx
import orjson

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.owners import NO_LINE
from tests.layers.samples import SAMPLES
from tests.talk import append, edit, ok, put, said, talk

Rows = dict[str, list[dict[str, Any]]]
"""The rows of each table, as JSON has them, in some order that is always the same."""

REVISION = {"revision", "base_revision", "changed"}
"""The columns of a line's revision."""

_FAILED = (
    "error = 'the model was busy', attempts = 6, failed_at = run_after,"
    """ refusals = '[{"kind": "declined", "reason": "the model refuses"}]'"""
)
_SOURCES = """
    INSERT INTO source_lines (chat_key, line_id, seq, number, source)
    SELECT chat_key, line_id, n.* FROM chats, (VALUES (0, 0, '{"jsonl": {"a": 1}}'), (3, 0, '{"jsonl": {}}'),
        (40, 2, '{"jsonl": {"b": 2}}')) AS n WHERE chat_key = $1 AND line_status = 'current'"""
"""What an import leaves of fields that the service does not know."""

_LEFT = "lease = gen_random_uuid(), leased_until = now() - interval '1 minute', attempts = 1, progress = '{\"n\": 1}'"
"""What a model that refuses, and a worker that dies, leave."""


async def make_rich_chat(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    """The chat `c` of 43 messages, with memos that are made, edited, deleted, failed, left by a worker.

    For a while every layer was switched on; what was made and what people wrote is there (`LayerSample.rich`).
    """
    await put(
        api,
        user_id="mira",
        user_name="Mira",
        user_persona="Mira, a cartographer.",
        characters=[{"name": "Kai", "persona": "A lighthouse keeper."}],
        system_prompt="You are Kai.",
        language="en",
        time_zone="Europe/Berlin",
        settings={"history": {"keep_messages": 8, "grow_messages": 8}},
        metadata={"theme": "dusk"},
    )
    call = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    await append(api, [said(n, name="Kai", metadata={"n": n}) for n in range(1, 6)])
    await append(api, [said(6, kind="thought"), said(7, content=" \n"), said(8), said(9)])
    await append(api, [said(10, tool_calls=[call]), said(11, role="tool", tool_call_id="call-1", importance=0.5)])
    await append(api, talk(12, 32))
    clock.step(2)
    await dispatcher.drain()
    await _switch_layers_on(api, dispatcher, clock)
    await append(api, talk(37, 43))
    for sample in SAMPLES.values():
        await sample.rich.write_last(api)
    await _change_messages(api)
    async with database.raw() as connection:
        for values, which in ((_FAILED, "payload IS NOT NULL"), (_LEFT, "payload IS NULL")):
            work = f"UPDATE work SET {values} WHERE owner_key = $1 AND {which}"
            await connection.execute(work, chat_key(tenant, "c"))
        await connection.execute(_SOURCES, chat_key(tenant, "c"))
        for sample in SAMPLES.values():
            await sample.rich.fill(connection, chat_key(tenant, "c"))


async def _switch_layers_on(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """Have every layer make something of it, have people write in it, and switch the layers off again."""
    settings = {section: values for sample in SAMPLES.values() for section, values in sample.rich.settings.items()}
    await put(api, status=200, settings=settings)
    for sample in SAMPLES.values():
        await sample.rich.write_before(api)
    await append(api, talk(33, 36))
    await _make(dispatcher, clock)
    for sample in SAMPLES.values():
        await sample.rich.write_after(api)
    await edit(api, "m2", hidden=False)
    await _make(dispatcher, clock)
    await put(api, status=200, settings={section: {"enabled": False} for section in settings})
    await _make(dispatcher, clock)


async def _make(dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """Have made what is due, and what follows from it."""
    for _ in range(5):
        clock.step(30)
        await dispatcher.drain()


async def _change_messages(api: httpx.AsyncClient) -> None:
    """Everything that can become of a message, once early and once late."""
    for name in ("m13", "m37"):
        ok(await api.delete(f"/v1/chats/c/messages/{name}"), 204)
    for name in ("m3", "m36"):
        url = f"/v1/chats/c/messages/{name}"
        ok(await api.post(f"{url}/swipes", json={"content": "Another lamp."}), 201)
        ok(await api.patch(url, json={"content": "A brighter lamp.", "pinned": True, "excluded": True}), 200)
    ok(await api.put("/v1/chats/c/messages/m36/swipes/selected", json={"index": 0}), 200)
    ok(await api.patch("/v1/chats/c/messages/m14", json={"hidden": True}), 200)


WITHOUT_LINES = ["passages", "scopes", "statements", "text_vectors", "tool_calls", "vectors"]


async def list_tables(database: Database) -> dict[str, str]:
    """The tables that have lines, each with the column of the chat's key, by the database's own catalog.

    Not those of WITHOUT_LINES: they have the key of such a table, but no rows of lines, as their constraints say.
    """
    async with database.raw() as connection:
        rows = await connection.fetch(
            """
            SELECT c.relname::text AS name, k.attname::text AS key
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_attribute k ON k.attrelid = c.oid
            WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attname = 'line_id'
                AND k.attname IN ('chat_key', 'owner_key') AND c.relname <> ALL ($1::text[])
            ORDER BY name
            """,
            WITHOUT_LINES,
        )
    return {row["name"]: row["key"] for row in rows}


async def rows_of(database: Database, key: UUID, line_id: UUID | str | None = None) -> Rows:
    """All rows of a chat, or of one of its lines, in every table that has lines."""
    found = {}
    for table, key_column in (await list_tables(database)).items():
        async with database.raw() as connection:
            rows = await connection.fetch(
                f"""
                SELECT to_jsonb(t)::text AS row FROM "{table}" t
                WHERE {key_column} = $1 AND line_id = coalesce($2, line_id) AND line_id <> $3 ORDER BY 1
                """,
                key,
                line_id,
                NO_LINE,
            )
        found[table] = [orjson.loads(row["row"]) for row in rows]
    return found


def without_revisions(rows: Rows) -> Rows:
    """The same rows without the revisions of lines: a change that turns out to change nothing raises them, too."""
    chats = [{name: row[name] for name in row if name not in REVISION} for row in rows["chats"]]
    return {**rows, "chats": chats}


async def rows(database: Database, tenant: str) -> Rows:
    """Return all rows of the chat `c`."""
    return await rows_of(database, chat_key(tenant, "c"))
