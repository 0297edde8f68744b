"""A vault with an error leaves nothing behind, and none reaches the data of others."""

import io
import re
from collections.abc import Callable

import httpx
import pytest

from app.chats.chat_lock import ChatRef
from app.chats.errors import ChatTaken
from app.kit.auth import Forbidden
from app.kit.db import Connection, Database, list_tables
from app.kit.errors import Unavailable
from app.kit.ids import tenant_key, user_key
from app.kit.owners import NO_LINE
from app.knowledge.service import MAX_STORED_KEYS
from app.registry import LAYERS
from app.vault.archive import open_vault
from app.vault.errors import InvalidVault
from app.vault.restore import restore_vault
from app.vault.state_file import StateError, read_rows
from tests.conftest import NOON
from tests.talk import append, ok, put, talk
from tests.vault.vaults import Files, export, files_of, ref_of, restore, zip_of

Edit = Callable[[str], str]

_IN_TIME = "must be between 0001-01-02 and 9999-12-30 in UTC"


def _replace(old: str, new: str) -> Edit:
    def edit(state: str) -> str:
        assert old in state
        return state.replace(old, new)

    return edit


def _insert_row(table: str, row: str) -> Edit:
    return lambda state: state.replace(f'"{table}": [\n', f'"{table}": [\n{row},\n')


def _move_first(table: str) -> Edit:
    """Move the rows of a table before those of the chat."""

    def edit(state: str) -> str:
        found = re.search(rf'"{table}": \[\n{{.*?\n\],\n', state, re.DOTALL)
        assert found
        head, rest = state.replace(found[0], "").split("\n", 1)
        return f"{head}\n{found[0]}{rest}"

    return edit


def _set_time(name: str, value: str) -> Edit:
    """Replace the first time with this name."""

    def edit(state: str) -> str:
        changed, found = re.subn(f'"{name}": "[^"]+"', lambda _: f'"{name}": {value}', state, count=1)
        assert found
        return changed

    return edit


_REFUSED: list[tuple[Edit, str]] = [
    (_replace('"version": 1', '"version": 2'), "line 1: the vault has version 2; this release reads version 1"),
    (_replace('{"format"', ' {"format"'), "line 1: is not the first line"),
    (lambda state: state[:-10], "ends before the end of the document|is not a line"),
    (lambda state: state + "{}\n", "comes after the end"),
    (_insert_row("messages", "[" * 10), "is not a line"),
    (_insert_row("messages", '{"a": ' + "[" * 100_000 + "}"), "not JSON at column"),
    (_insert_row("messages", '{"a": ' + "[" * 300 + "]" * 300 + "}"), "must not be nested so deep"),
    (_replace('"metadata": {}', '"metadata": {"n": 1e-16000}'), "the exponent of a number must be from -324 to 324"),
    (_replace('"time_zone": "UTC"', '"time_zone": "Mars"'), "time_zone: "),
    (_replace('"characters": []', '"characters": [5]'), r"characters\.0: "),
    (_replace('"settings": {', '"settings": 5, "metadata": {'), "settings: must be a JSON object"),
    (_insert_row("swipes", '{"line_id": []}'), "has no such line"),
    (_insert_row("messages", '{"a": 1'), "not JSON at column"),
    (_insert_row("messages", '{"content": "\\ud800"}'), "not JSON at column"),
    (_insert_row("messages", '{"seq": 1}'), "has other fields"),
    (_replace('"messages": [', '"massages": ['), "the table 'massages' is unknown"),
    (_replace('"swipes": [', '"messages": ['), "the table 'messages' comes twice"),
    (_move_first("statements"), "the rows of chats must come before those of statements"),
    (_replace('"role": "user"', '"role": "king"'), "violates ck_messages_role"),
    (_replace('"seq": 3', '"seq": 1'), "contains a row twice"),
    (_replace('"seq": 3', '"seq": "x"'), "seq: must be a valid integer"),
    (_replace('"seq": 3', '"seq": 99'), "a message is above its line's head_seq"),
    (_replace('"seq": 3', '"seq": null'), "seq: must be a valid integer"),
    (_replace("lamp number 3.", "lamp \\u0000."), "content: may not contain the NUL character"),
    (_replace('"line_status": "current"', '"line_status": "abandoned"'), "line_status: must be current in the first"),
    (_replace('"head_seq"', '"tenant": "x", "head_seq"'), "chats has no column 'tenant'"),
    (_replace('"cursors": {', '"cursors": 5, "x": {'), "chats has no column 'x'"),
    (_set_time("sent_at", '"infinity"'), "sent_at: must be a time with its time zone"),
    (
        _set_time("sent_at", '"0044-03-15T12:00:00+00:00 BC"'),
        "sent_at: must be a time with its time zone",
    ),
    (_set_time("sent_at", '"now"'), "sent_at: must be a time with its time zone"),
    (_set_time("sent_at", '"2025-09-06T18:43:00"'), "sent_at: must be a time with its time zone"),
    (_set_time("sent_at", '"0001-01-01T00:00:00+00:00"'), f"sent_at: {_IN_TIME}"),
    (_set_time("created_at", '"9999-12-31T00:00:00+00:00"'), f"created_at: {_IN_TIME}"),
    (_set_time("learnt_at", '"-infinity"'), "learnt_at: must be a time with its time zone"),
    (_replace('"is_set": true', '"is_set": "maybe"'), "is_set: must be a valid boolean"),
    (_replace('"head_seq": 4', '"head_seq": 999999999'), "chats.head_seq: must be 4"),
    (_replace('"message_count": 4', '"message_count": 5'), "chats.message_count: must be 4"),
    (_replace('"turn_count": 2', '"turn_count": 50'), "chats.turn_count: must be at most 4"),
    (_replace('"memo_count": 0', '"memo_count": 3'), "chats.memo_count: must be 0"),
    (_replace('"content": "user says', '"content": "", "metadata": "user says'), "content: may be empty only"),
    (_replace('"scope": "chat"', '"scope": "user"'), "one that a person set"),
    (_replace('"scope": "chat"', '"scope": "world"'), "scope: must be"),
]


async def _make(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira")
    await append(api, talk(1, 4))
    ok(await api.put("/v1/chats/c/facts/boat", json={"value": "It is blue."}), 201)


@pytest.mark.parametrize(("edit", "words"), _REFUSED)
async def test_a_vault_with_an_error_is_refused_whole(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str, edit: Edit, words: str
) -> None:
    await _make(api)
    files = files_of(await export(database, ref_of(tenant)))
    files["state.json"] = edit(files["state.json"].decode()).encode()
    target = ref_of(tenant, "d")
    with pytest.raises(InvalidVault, match=words) as refused:
        await restore(database, zip_of(files), target)
    assert "\n" not in str(refused.value)
    assert "lamp" not in str(refused.value)
    await _expect_nothing(connection, target)


async def test_all_lines_belong_to_the_user_of_the_current_one(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str
) -> None:
    """The first line is so long that the second one, which names another user, is inserted on its own."""
    await _make(api)
    ok(await api.put("/v1/chats/c/messages", json={"messages": [*talk(9, 9), *talk(1, 4)]}), 200)
    files = files_of(await export(database, ref_of(tenant)))
    first, second = _take_lines(files)
    cast = ", ".join(f'{{"name": "Kai {n}", "persona": "{"a" * 100_000}"}}' for n in range(3))
    long = first.replace('"characters": []', f'"characters": [{cast}]')
    assert long != first
    other = second.replace('"user_id": "mira"', '"user_id": "nell"')
    assert other != second
    state = files["state.json"].decode().replace(first, long).replace(second, other)
    target = ref_of(tenant, "d")
    await restore(database, zip_of({**files, "state.json": state.encode()}), target)
    users = await connection.fetch("SELECT DISTINCT user_id, user_key FROM chats WHERE chat_key = $1", target.key)
    assert [row["user_id"] for row in users] == ["mira"]
    ok(await api.delete("/v1/users/mira"), 204)
    await _expect_nothing(connection, target)


def _take_lines(files: Files) -> list[str]:
    """The rows of the chat's lines."""
    return [line for line in files["state.json"].decode().split("\n") if '"line_status"' in line]


async def test_a_connection_that_dies_leaves_nothing(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str
) -> None:
    await _make(api)
    vault, target = await export(database, ref_of(tenant)), ref_of(tenant, "d")
    with pytest.raises(Unavailable):
        await _restore_and_die(database, connection, vault, target)
    await _expect_nothing(connection, target)


async def test_a_taken_id_is_refused(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await _make(api)
    with pytest.raises(ChatTaken):
        await restore(database, await export(database, ref_of(tenant)), ref_of(tenant))


async def test_user_memories_are_restored_only_for_the_same_user(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str
) -> None:
    """A token of another user imports the words, but nobody's scope: the new chat alone knows them."""
    vault = await _teach(api, database, tenant, "user")
    ok(await api.delete("/v1/users/mira"), 204)
    await restore(database, vault, ref_of(tenant, "hers", only_user="nell"))
    assert ok(await api.get("/v1/chats/hers"), 200)["user_id"] == "nell"
    assert ok(await api.get("/v1/chats/hers/facts"), 200)["items"][0]["value"] == "It is blue."
    for user in ("mira", "nell"):
        assert await _count_known(connection, user_key(tenant, user)) == 0
    await restore(database, vault, ref_of(tenant, "his", only_user="mira"))
    assert await _count_known(connection, user_key(tenant, "mira")) == 1
    assert ok(await api.get("/v1/users/mira/facts"), 200)["items"][0]["value"] == "It is blue."


async def test_facts_deleted_by_a_person_are_not_restored(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str
) -> None:
    """Nor is it in the vault, although the line that taught it still exists."""
    await _teach(api, database, tenant, "user")
    ok(await api.delete("/v1/users/mira/facts/boat"), 204)
    vault = await export(database, ref_of(tenant))
    state = files_of(vault)["state.json"]
    assert b'"scope": "user"' not in state
    assert b'"kind": "fact"' not in state
    empty = f"{tenant}-empty"
    await restore(database, vault, ref_of(empty))
    assert await _count_known(connection, user_key(empty, "mira")) == 0
    assert files_of(await export(database, ref_of(empty))) == files_of(vault)


async def test_only_an_unlimited_key_restores_a_tenants_knowledge(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str
) -> None:
    learning = await _teach(api, database, tenant, "global")
    with pytest.raises(Forbidden, match="learn_scope"):
        await restore(database, learning, ref_of(tenant, "d", only_user="mira"))
    await put(api, settings={"memories": {"learn_scope": "user"}}, status=200)
    vault = await export(database, ref_of(tenant))
    ok(await api.delete("/v1/chats/c"), 204)
    await restore(database, vault, ref_of(tenant, "d", only_user="mira"))
    assert await _count_known(connection, tenant_key(tenant)) == 0
    await restore(database, vault, ref_of(tenant))
    assert await _count_known(connection, tenant_key(tenant)) == 1


async def test_a_token_of_a_chat_restores_nothing_to_wider_scopes(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    vault = await _teach(api, database, tenant, "user")
    with pytest.raises(Forbidden):
        await restore(database, vault, ref_of(tenant, "d", only_chat=True))
    own = await export(database, ref_of(tenant, only_chat=True))
    with pytest.raises(Forbidden, match="learn_scope"):
        await restore(database, own, ref_of(tenant, "d", only_chat=True))


@pytest.mark.parametrize("learn_scope", ["user", "global"])
async def test_a_chat_token_with_user_scope_restores_to_the_chat(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str, learn_scope: str
) -> None:
    """Such a token cannot give the chat a user, or write into a scope that other chats see."""
    await _teach(api, database, tenant, learn_scope)
    await put(api, settings={"memories": {"learn_scope": "chat"}}, status=200)
    vault = await export(database, ref_of(tenant))
    ok(await api.delete("/v1/users/mira"), 204)
    await restore(database, vault, ref_of(tenant, "d", of_chat=True))
    assert ok(await api.get("/v1/chats/d"), 200)["user_id"] is None
    assert ok(await api.get("/v1/chats/d/facts"), 200)["items"][0]["value"] == "It is blue."
    for key in (user_key(tenant, "mira"), tenant_key(tenant)):
        assert await _count_known(connection, key) == 0


async def test_a_statement_that_is_known_is_not_replaced(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str
) -> None:
    """Nor held, nor read out by a vault that only names it."""
    files = files_of(await _teach(api, database, tenant, "user"))
    lied = files | {"state.json": files["state.json"].replace(b"It is blue.", b"It is red.")}
    with pytest.raises(InvalidVault, match="known already, with other words"):
        await restore(database, zip_of(lied), ref_of(tenant, "d"))
    only_named = files | {"state.json": _without_statements(files)}
    with pytest.raises(InvalidVault, match="not in the vault"):
        await restore(database, zip_of(only_named), ref_of(tenant, "d"))
    assert await _count_known(connection, user_key(tenant, "mira")) == 1


async def test_a_vault_does_not_raise_a_scope_over_its_limit(
    api: httpx.AsyncClient, database: Database, connection: Connection, tenant: str
) -> None:
    """Facts and blocks are counted apart, and keys without a value count."""
    vault = await _teach(api, database, tenant, "user")
    ok(await api.delete("/v1/chats/c"), 204)
    fill = """
        INSERT INTO statements (owner_key, line_id, statement_id, kind, key, origin, is_set, learnt_at)
        SELECT $1, $2, gen_random_uuid(), $3, 'k' || n, 'person', true, $4 FROM generate_series(1, $5::int) n"""
    key = user_key(tenant, "mira")
    await connection.execute(fill, key, NO_LINE, "block", NOON, MAX_STORED_KEYS)
    await connection.execute(fill, key, NO_LINE, "fact", NOON, MAX_STORED_KEYS)
    words = "would have more than 4,000 facts or more than 4,000 blocks, including those without a value"
    with pytest.raises(InvalidVault, match=words):
        await restore(database, vault, ref_of(tenant, "d"))
    await connection.execute("DELETE FROM statements WHERE owner_key = $1 AND kind = 'fact' AND key = 'k1'", key)
    await restore(database, vault, ref_of(tenant, "d"))


def test_rows_are_read_with_their_lines() -> None:
    head = b'{"format": "memobook-vault", "version": 1, "tables": {\n'
    rows = list(read_rows(iter([head, b'"a": [\r\n', b'{"b": 1},\r\n', b'{"b": 2}\n', b"]\n", b"}}"])))
    assert [(row.table, row.number, row.fields) for row in rows] == [("a", 3, {"b": 1}), ("a", 4, {"b": 2})]
    with pytest.raises(StateError, match="line 1"):
        list(read_rows(iter([])))


async def _restore_and_die(database: Database, connection: Connection, vault: bytes, target: ChatRef) -> None:
    """Restore, and end the connection of the transaction before it commits."""
    from_pid = connection.get_server_pid()
    async with database.unit_of_work(target.tenant, target.key) as db_session:
        await restore_vault(db_session, open_vault(io.BytesIO(vault)), target, LAYERS, now=NOON)
        pid = db_session.raw.get_server_pid()
        assert pid != from_pid
        await connection.execute("SELECT pg_terminate_backend($1)", pid)
        await db_session.raw.execute("SELECT 1")


async def _expect_nothing(connection: Connection, ref: ChatRef) -> None:
    for table in list_tables():
        for key in {"chat_key", "owner_key"} & set(table.c.keys()):
            found = f'SELECT count(*) FROM "{table.name}" WHERE {key} = $1'
            assert await connection.fetchval(found, ref.key) == 0, table.name


async def _teach(api: httpx.AsyncClient, database: Database, tenant: str, scope: str) -> bytes:
    """The vault of the chat `c` of the user `mira`, which taught a fact to a wider scope."""
    await put(api, user_id="mira", characters=[{"name": "Kai"}], settings={"memories": {"learn_scope": scope}})
    await append(api, talk(1, 2))
    fact = {"key": "boat", "value": "It is blue."}
    ok(await api.post("/v1/chats/c/tools/set_fact", json=fact), 200)
    return await export(database, ref_of(tenant))


async def _count_known(connection: Connection, owner_key: object) -> int:
    count: int = await connection.fetchval("SELECT count(*) FROM statements WHERE owner_key = $1", owner_key)
    return count


def _without_statements(files: Files) -> bytes:
    lines = files["state.json"].split(b"\n")
    kept = [line for line in lines if b'"is_set"' not in line]
    return b"\n".join(kept)


@pytest.mark.parametrize(
    ("value", "is_read"),
    [
        ("1e-324", True),
        ("1E+0000300", True),
        ('"1e-16000"', True),
        ("1" * 5_000 + "e-4800", False),
        ("1e-325", False),
        ("-2.5E-16000", False),
        (f"1e-{'9' * 5_000}", False),
    ],
)
def test_numbers_have_short_exponents(value: str, *, is_read: bool) -> None:
    """PostgreSQL would write all of their digits."""
    lines = [f'{{"a": [{value}]}}'.encode()]
    state = [b'{"format": "memobook-vault", "version": 1, "tables": {', b'"chats": [', *lines, b"]", b"}}"]
    rows = read_rows(iter(state))
    if is_read:
        assert [row.written for row in rows] == lines
    else:
        with pytest.raises(StateError, match="the exponent of a number must be"):
            list(rows)
