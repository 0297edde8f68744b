"""What leaves in a vault returns from it: every file has the same bytes, and the chat is the same chat."""

import tempfile
import tracemalloc
from typing import Any

import httpx
import orjson
import pytest

from app.chats.chat_lock import ChatRef
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database, list_tables
from app.kit.ids import chat_key, user_key
from app.registry import LAYERS
from app.vault.archive import open_vault
from app.vault.export import write_vault
from app.vault.restore import restore_vault
from app.vault.tables import LEFT_OUT, list_vault_tables
from tests.background import settle
from tests.chats.rich import make_rich_chat, rows_of
from tests.chats.words_everywhere import count_word, write_everywhere
from tests.conftest import NOON
from tests.layers.sample import Stage
from tests.scripted_model import ScriptedModel
from tests.talk import append, get, ok, put, said, talk
from tests.vault.vaults import export, files_of, ref_of, restore

_WITHOUT_CHATS = {"alembic_version", "embedding_models", "keys", "model_usage", "secrets", "workers"}
"""The tables that contain nothing of a chat; a new one belongs here, in a vault or in `LEFT_OUT`."""

_MADE_AGAIN = ("tenant", "chat_id", "user_key", "revision", "base_revision", "changed", "cut_waits")


async def test_every_table_is_in_a_vault_or_left_out(connection: Connection) -> None:
    found = await connection.fetch("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
    named = {table.name for table in list_vault_tables()} | set(LEFT_OUT) | _WITHOUT_CHATS
    assert {row["tablename"] for row in found} <= named
    keyed = {table.name for table in list_tables() if {"chat_key", "owner_key", "user_key"} & set(table.c.keys())}
    assert not keyed & _WITHOUT_CHATS


async def test_every_file_returns_byte_by_byte(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await make_rich_chat(api, dispatcher, clock, database, tenant)
    before = await export(database, ref_of(tenant))
    assert all(files_of(before).values())
    for target in (ref_of(tenant, "d"), ref_of(f"{tenant}-empty")):
        await restore(database, before, target)
        assert files_of(await export(database, target)) == files_of(before)
        assert await _rows(database, target) == await _rows(database, ref_of(tenant))
    for path in ("/context?format=text", "/memos", "/diary", "/scenes", "/inclusion"):
        here, there = [ok(await api.get(f"/v1/chats/{name}{path}"), 200) for name in ("c", "d")]
        assert _without_work(here) == _without_work(there)
    assert tenant.encode() not in b"".join(files_of(before).values())


async def test_all_lines_and_what_was_taught_return(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    model: ScriptedModel,
    tenant: str,
    connection: Connection,
) -> None:
    """Also after everything was erased, and in a second chat of the same user."""
    await write_everywhere(Stage(api, dispatcher, clock, model), "ardvid")
    ok(await api.put("/v1/users/mira-ardvid/facts/tea", json={"value": "a word of the user"}), 201)
    before = await export(database, ref_of(tenant))
    state = files_of(before)["state.json"]
    assert b'"scope": "user"' in state
    assert b"a word of the user" not in b"".join(files_of(before).values())
    missing = {table for table, _ in await count_word(connection, "ardvid")} - {t.name for t in list_vault_tables()}
    assert missing <= set(LEFT_OUT)
    await restore(database, before, ref_of(tenant, "d"))
    assert files_of(await export(database, ref_of(tenant, "d"))) == files_of(before)
    ok(await api.delete("/v1/users/mira-ardvid"), 204)
    await restore(database, before, ref_of(tenant))
    assert files_of(await export(database, ref_of(tenant))) == files_of(before)
    assert len((await get(api, "/lines"))["items"]) == 3
    taught = "SELECT count(*) FROM statements WHERE owner_key = $1"
    assert await connection.fetchval(taught, user_key(tenant, "mira-ardvid"))


async def test_a_vault_has_no_words_of_other_chats(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    """Not even if they share diaries, facts and memories."""
    shared = {"preset": "companion", "memories": {"learn_scope": "user"}, "diary": {"scope": "character"}}
    for name in ("c", "other"):
        await put(api, name, user_id="mira", characters=[{"name": "Kai"}], settings=shared)
        await append(api, [said(n, content=f"We talk in {name} of {n}.") for n in (1, 2)], name)
        for tool, given in (
            ("set_fact", {"key": f"harbour {name}", "value": f"fact of {name}"}),
            ("save_memory", {"content": f"entry of {name}"}),
            ("memory_block_update", {"block": "user", "operation": "append", "content": f"block of {name}"}),
        ):
            ok(await api.post(f"/v1/chats/{name}/tools/{tool}", json=given), 200)
        ok(await api.post(f"/v1/chats/{name}/memories", json={"content": f"memory of {name}"}), 201)
    whole = b"".join(files_of(await export(database, ref_of(tenant))).values())
    assert b"of other" not in whole
    assert b"in other" not in whole
    for kind in (b"fact", b"entry", b"block", b"memory"):
        assert kind + b" of c" in whole
    alone = b"".join(files_of(await export(database, ref_of(tenant, only_chat=True))).values())
    assert b"fact of c" not in alone
    assert b'"scope": "user"' not in alone


@pytest.mark.parametrize("names", [["Kai"], [], ["Jo: the cook"]])
@pytest.mark.parametrize("preset", ["memo", "diary", "agent", "decay", "companion"])
async def test_the_work_of_a_chat_is_due_again_on_all_lines(
    api: httpx.AsyncClient, database: Database, tenant: str, connection: Connection, preset: str, names: list[str]
) -> None:
    settings = {"preset": preset, "diary": {"auto_write_turns": 2}, "consolidation": {"every_turns": 2}}
    await put(api, characters=[{"name": name} for name in names], settings=settings)
    await append(api, talk(1, 12))
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "before"}), 201)
    await append(api, talk(13, 20))
    due = """SELECT layer || ' ' || key || ' ' || at_seq || ' ' || coalesce(payload::text, '') AS item,
        run_after = 'infinity' AS is_parked FROM work
        WHERE owner_key = $1 AND layer <> 'scenes' AND (run_after < 'infinity' OR payload ? 'last_seq') ORDER BY 1, 2"""
    before = await connection.fetch(due, chat_key(tenant, "c"))
    assert before
    if preset in ("agent", "companion"):
        assert {row["is_parked"] for row in before if "range:1 " in row["item"]} == {True, False}
    vault = await export(database, ref_of(tenant))
    await restore(database, vault, ref_of(tenant, "d"))
    assert await connection.fetch(due, chat_key(tenant, "d")) == before
    assert files_of(await export(database, ref_of(tenant, "d"))) == files_of(vault)


async def test_breaks_are_searched_for_at_the_next_reply(
    api: httpx.AsyncClient, database: Database, tenant: str, connection: Connection
) -> None:
    await put(api, settings={"preset": "scenes"})
    await append(api, talk(1, 20))
    due = "SELECT key FROM work WHERE owner_key = $1 AND layer = 'scenes' AND key = 'detect'"
    assert await connection.fetch(due, chat_key(tenant, "c"))
    await restore(database, await export(database, ref_of(tenant)), ref_of(tenant, "d"))
    await append(api, talk(21, 22), "d")
    assert await connection.fetch(due, chat_key(tenant, "d"))


async def test_what_was_due_at_the_export_is_learnt_after_the_import(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    model = {"preset": "companion", "consolidation": {"every_turns": 1}}
    await put(api, characters=[{"name": "Kai"}], settings=model)
    said_first = [said(1, content="My name is Oskar."), said(2, content="Welcome, Oskar.")]
    await append(api, [*said_first, *talk(3, 6)])
    vault = await export(database, ref_of(tenant))
    await restore(database, vault, ref_of(tenant, "d"))
    await settle(dispatcher, clock)
    for name in ("c", "d"):
        facts = ok(await api.get(f"/v1/chats/{name}/facts"), 200)["items"]
        assert [(fact["key"], fact["value"]) for fact in facts] == [("name", "Oskar")]


async def test_the_words_of_a_restored_chat_are_indexed_again(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    connection: Connection,
) -> None:
    await append(api, talk(1, 70))
    await settle(dispatcher, clock)
    count = "SELECT count(*) FROM passages WHERE chat_key = $1"
    indexed = await connection.fetchval(count, chat_key(tenant, "c"))
    assert indexed > 0
    vault = await export(database, ref_of(tenant))
    assert str(chat_key(tenant, "c")).encode() not in files_of(vault)["state.json"]
    await restore(database, vault, ref_of(tenant, "d"))
    assert await connection.fetchval(count, chat_key(tenant, "d")) == 0
    await settle(dispatcher, clock)
    assert await connection.fetchval(count, chat_key(tenant, "d")) == indexed


async def test_a_restored_chat_goes_on(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await append(api, talk(1, 4))
    await restore(database, await export(database, ref_of(tenant)), ref_of(tenant, "d"))
    await append(api, talk(5, 6), "d")
    listed = ok(await api.get("/v1/chats/d/messages"), 200)["items"]
    assert [one["seq"] for one in listed] == [1, 2, 3, 4, 5, 6]


async def test_a_large_chat_needs_little_memory(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str
) -> None:
    """Twelve megabytes of messages, out and in again."""
    await append(api, [said(1)])
    names = "chat_key, line_id, role, tokens, sent_at, identity, digest"
    await connection.execute(
        f"""INSERT INTO messages ({names}, seq, message_id, content)
        SELECT {names}, n, 'n' || n, (SELECT string_agg(md5(n || ' ' || k), ' ') FROM generate_series(1, 606) AS k)
        FROM messages, generate_series(2, 600) AS n WHERE chat_key = $1""",
        chat_key(tenant, "c"),
    )
    await connection.execute(
        "UPDATE chats SET head_seq = 600, message_count = 600, token_count = 600 * token_count WHERE chat_key = $1",
        chat_key(tenant, "c"),
    )
    with tempfile.TemporaryFile() as file:
        tracemalloc.start()
        try:
            await write_vault(database, ref_of(tenant), None, file)
            target = ref_of(tenant, "d")
            async with database.unit_of_work(tenant, target.key) as db_session:
                await restore_vault(db_session, open_vault(file), target, LAYERS, now=NOON)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 6_000_000, peak
    stored = "SELECT count(*) FROM messages WHERE chat_key = $1"
    assert await connection.fetchval(stored, target.key) == 600


async def test_a_snapshot_sees_one_state_and_writes_nothing(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 2))
    count = "SELECT count(*) FROM messages WHERE chat_key = $1"
    async with database.snapshot(tenant) as db_session:
        before = await db_session.raw.fetchval(count, chat_key(tenant, "c"))
        await append(api, talk(3, 4))
        assert await db_session.raw.fetchval(count, chat_key(tenant, "c")) == before == 2
        with pytest.raises(Exception, match="read-only transaction"):
            await db_session.raw.execute("DELETE FROM messages WHERE chat_key = $1", chat_key(tenant, "c"))


async def _rows(database: Database, ref: ChatRef) -> dict[str, list[bytes]]:
    """All rows of a chat but due work, without what an import gives it."""
    found = {}
    for table, rows in (await rows_of(database, ref.key)).items():
        known = [row for row in rows if not row.get("wide_key")]  # not what was taught to a former user
        kept = [{name: row[name] for name in row if name not in (*_MADE_AGAIN, "chat_key")} for row in known]
        found[table] = sorted(orjson.dumps(row, option=orjson.OPT_SORT_KEYS) for row in kept)
    del found["work"]
    return found


def _without_work(answer: Any) -> Any:
    """An answer without the id of the chat, and without the errors and attempts of work, which is new."""
    if isinstance(answer, list):
        return [_without_work(one) for one in answer]
    if isinstance(answer, dict):
        new = ("chat_id", "error", "attempts", "work_id", "status")
        return {name: _without_work(value) for name, value in answer.items() if name not in new}
    return answer
