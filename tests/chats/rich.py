"""A chat that has something in every table and column that a line has, and all of its rows as they stand."""

from typing import Any
from uuid import UUID

import httpx
import orjson

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.sweep import Sweep
from tests.talk import append, get, ok, put, said, talk

Rows = dict[str, list[dict[str, Any]]]
"""The rows of each table, as JSON has them, in some order that is always the same."""

_AT_WORK = """
    lease = gen_random_uuid(), leased_until = now() + interval '1 hour', error = 'the model was busy', attempts = 2,
    failed_at = run_after"""
"""What a worker and a model that refuses would write."""


async def make_rich_chat(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock, database: Database, tenant: str
) -> None:
    """The chat `c` of 43 messages, with memos that are made, edited, deleted, due, being made, and a person's own."""
    await put(
        api,
        user_id="mira",
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
    await sweep.drain()
    await append(api, talk(33, 43))
    memos = (await get(api, "/memos"))["items"]
    ok(await api.post("/v1/chats/c/memos", json={"text": "They have met before.", "after_seq": 20}), 201)
    ok(await api.patch(f"/v1/chats/c/memos/{memos[0]['id']}", json={"pinned": True, "text": "Mira came ashore."}), 200)
    ok(await api.delete(f"/v1/chats/c/memos/{memos[1]['id']}"), 204)
    ok(await api.post(f"/v1/chats/c/memos/{memos[2]['id']}/regenerate", json={"instruction": "Name the lamp."}), 202)
    await _change_messages(api)
    async with database.raw() as connection:
        at_work = f"UPDATE work SET {_AT_WORK} WHERE chat_key = $1 AND payload IS NOT NULL"
        await connection.execute(at_work, chat_key(tenant, "c"))


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


async def list_tables(database: Database) -> list[str]:
    """The tables that have lines, by the database's own catalog."""
    async with database.raw() as connection:
        rows = await connection.fetch(
            """
            SELECT c.relname::text AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attname = 'line_id'
            ORDER BY name
            """
        )
    return [row["name"] for row in rows]


async def rows_of(database: Database, key: UUID, line_id: UUID | str | None = None) -> Rows:
    """All rows of a chat, or of one of its lines, in every table that has lines."""
    found = {}
    for table in await list_tables(database):
        async with database.raw() as connection:
            rows = await connection.fetch(
                f"""
                SELECT to_jsonb(t)::text AS row FROM "{table}" t
                WHERE chat_key = $1 AND line_id = coalesce($2, line_id) ORDER BY 1
                """,
                key,
                line_id,
            )
        found[table] = [orjson.loads(row["row"]) for row in rows]
    return found
