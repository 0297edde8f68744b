"""A vault with a damaged value is refused whole, or the chat that it makes answers."""

import os
import random
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from app.chats.chat_lock import ChatRef
from app.dispatcher import Dispatcher
from app.kit.auth import Forbidden
from app.kit.clock import SteppedClock
from app.kit.db import Connection, Database
from app.vault.errors import InvalidVault
from tests.chats.rich import make_rich_chat
from tests.talk import append, ok, put, said, talk
from tests.transfer.files import import_file
from tests.vault.vaults import Files, export, files_of, ref_of, restore, zip_of

Path = tuple[str | int, ...]

EVERY = 1 if "TESTS_EXAMPLES" in os.environ else 2
"""Of this many paths of a vault, one is tried; `make check-long` tries all."""

_PAGES = ("", "/messages", "/context?format=text", "/inclusion", "/memos", "/diary", "/facts", "/memories", "/scenes")
_REST = ("/state", "/export?format=jsonl")
_VALUES: tuple[Any, ...] = ("q", "", -5, 999_999_999, 2.5, True, None, [], {}, [5], {"q": 5})


@pytest.mark.parametrize(
    ("table", "path", "value", "words"),
    [
        ("chats", ("context_cache", "diary"), 5, "context_cache.diary: "),
        ("chats", ("context_cache", "words"), {}, "context_cache.words: "),
        ("chats", ("cursors", "memos", "size"), "q", "cursors.memos.size: must be a valid integer"),
        ("chats", ("cursors", "pauses"), {"seen_s": ["q"]}, "cursors.pauses.seen_s.0: must be a valid integer"),
        ("chats", ("head_seq",), 999_999_999, "chats.head_seq: must be 8"),
        ("chats", ("settings", "preset"), "zzz", "settings.preset: "),
        ("chats", ("settings", "memos"), {"every_messages": -5}, "settings.memos.every_messages: "),
        ("chats", ("settings", "diary"), {"scope": "maybe"}, "settings.diary.scope: "),
        ("chats", ("characters",), [{"name": "Kai", "hashed_name": 5}], "characters: hashed_name"),
        ("chats", ("cursors", "sessions", "number"), 1, "chats.cursors.sessions.number: must be at least 2"),
        ("chats", ("cursors", "memos", "first_seq"), 8, "chats.cursors.memos.first_seq: must be at least 9"),
        ("chats", ("cursors", "memos", "first_seq"), 10, "chats.cursors.memos.first_seq: must be at most 9"),
        ("chats", ("characters",), [{"name": "Kai", "id": "a\nb"}], "characters.0.id: must be a valid UUID"),
        ("bindings", ("layer",), "memos", "layer: must be one of blocks, diary, facts, memories"),
        ("bindings", ("layer",), ["diary"], "layer: must be one of blocks, diary, facts, memories"),
        ("memos", ("last_seq",), 9, "last_seq: is above the line's head_seq, 8"),
        ("messages", ("content",), "a" * 300_000, "content: must have at most 100000 characters"),
        ("messages", ("content",), "", "content: may be empty only when tool_calls is set"),
        ("messages", ("tool_calls",), [{"id": "x"}], "tool_calls.0.type: is required"),
        ("sessions", ("first_seq",), 999_999_999, "first_seq: is above the line's head_seq, 8"),
    ],
)
async def test_a_damaged_value_is_named_in_one_line(
    api: httpx.AsyncClient, database: Database, tenant: str, table: str, path: Path, value: Any, words: str
) -> None:
    await put(api)
    await append(api, talk(1, 4))
    ok(await api.post("/v1/chats/c/sessions/break"), 201)
    await append(api, talk(5, 8))
    ok(await api.post("/v1/chats/c/tools/set_fact", json={"key": "boat", "value": "blue"}), 200)
    files = files_of(await export(database, ref_of(tenant)))
    tables = orjson.loads(files["state.json"])["tables"]
    damaged = zip_of({**files, "state.json": _write(files, tables, table, 0, path, value)})
    problem = await import_file(api, damaged, "d", "vault", status=422)
    assert words in problem["detail"]
    assert problem["detail"].startswith("state.json: ")
    assert "\n" not in problem["detail"]
    ok(await api.get("/v1/chats/d"), 404)


@pytest.mark.parametrize(
    ("layer", "path", "value", "words"),
    [
        ("consolidation", ("key",), "range:99", "key must be range:1"),
        ("consolidation", ("key",), 5, "key: must be a valid string"),
        ("consolidation", ("at_seq",), 5, "at_seq must be the first_seq of the payload"),
        ("consolidation", ("layer",), "memos", "layer: must be one of consolidation, diary"),
        ("consolidation", ("line_id",), "q", "line_id: the chat has no such line"),
        ("consolidation", ("payload",), None, "payload: "),
        ("consolidation", ("payload", "first_seq"), 0, "payload.first_seq: "),
        ("consolidation", ("payload", "last_seq"), 0, "payload: must not end before it begins"),
        ("consolidation", ("payload", "last_seq"), 9, "payload.last_seq: is above the line's head_seq, 8"),
        ("consolidation", ("payload", "learnt_at"), "2026-04-01T12:00:00", "payload.learnt_at: must have a time zone"),
        ("consolidation", ("payload", "more"), 5, "payload.more: "),
        (
            "consolidation",
            ("payload", "learnt_at"),
            "2026-04-01\x0012:00:00+00:00",
            "payload.learnt_at: must be a time",
        ),
        ("diary", ("key",), "write:2:Kai", "key must be write:1: and the name of a character"),
        ("diary", ("key",), f"write:1:{'Kai' * 2_000}", "key: must have at most 300 characters"),
        ("diary", ("payload", "number"), 99, "chats.cursors.diary.number: must be at least 99"),
    ],
)
async def test_damaged_work_is_refused(
    api: httpx.AsyncClient, database: Database, tenant: str, layer: str, path: Path, value: Any, words: str
) -> None:
    await put(
        api,
        characters=[{"name": "Kai"}],
        settings={"preset": "companion", "diary": {"auto_write_turns": 2}, "consolidation": {"every_turns": 2}},
    )
    await append(api, talk(1, 8))
    files = files_of(await export(database, ref_of(tenant)))
    tables = orjson.loads(files["state.json"])["tables"]
    index = [row["layer"] for row in tables["work"]].index(layer)
    damaged = zip_of({**files, "state.json": _write(files, tables, "work", index, path, value)})
    problem = await import_file(api, damaged, "d", "vault", status=422)
    assert words in problem["detail"]
    assert ": :" not in problem["detail"]
    ok(await api.get("/v1/chats/d"), 404)


async def test_work_that_is_twice_in_a_vault_is_refused(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await put(api, settings={"preset": "agent", "consolidation": {"every_turns": 2}})
    for first in (1, 5):
        await append(api, talk(first, first + 3))
    files = files_of(await export(database, ref_of(tenant)))
    tables = orjson.loads(files["state.json"])["tables"]
    first = tables["work"][0]
    tables["work"][1] = first
    state = _write(files, tables, "work", 1, ("key",), first["key"])
    problem = await import_file(api, zip_of({**files, "state.json": state}), "d", "vault", status=422)
    assert "work contains this item twice" in problem["detail"]


async def test_unknown_settings_are_imported(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    """A release that does not know a setting ignores it."""
    await put(api)
    await append(api, talk(1, 2))
    files = files_of(await export(database, ref_of(tenant)))
    tables = orjson.loads(files["state.json"])["tables"]
    state = _write(files, tables, "chats", 0, ("settings", "of_later"), {"size": 5})
    await import_file(api, zip_of({**files, "state.json": state}), "d", "vault")
    ok(await api.get("/v1/chats/d/context"), 200)


async def test_a_chat_with_shared_diaries_returns(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    shared = {"preset": "companion", "diary": {"scope": "character"}}
    for name in ("c", "other"):
        await put(api, name, user_id="mira", characters=[{"name": "Kai"}], settings=shared)
        await append(api, [said(n, content=f"We talk in {name} of {n}.") for n in (1, 2)], name)
        ok(await api.post(f"/v1/chats/{name}/tools/save_memory", json={"content": f"entry of {name}"}), 200)
    before = await export(database, ref_of(tenant))
    assert b'"shared"' in files_of(before)["state.json"]
    await restore(database, before, ref_of(tenant, "d"))
    assert files_of(await export(database, ref_of(tenant, "d"))) == files_of(before)


async def test_no_damaged_value_breaks_the_chat(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    connection: Connection,
    tenant: str,
) -> None:
    """One value of a path of `state.json` is replaced by another one, for every path or every other one."""
    await make_rich_chat(api, dispatcher, clock, database, tenant)
    files = files_of(await export(database, ref_of(tenant)))
    tables: dict[str, list[Any]] = orjson.loads(files["state.json"])["tables"]
    chosen = random.Random(7)
    kept = 0
    for number, (table, index, path) in enumerate(_list_paths(tables)):
        value = _choose(chosen, _find(tables[table][index], path))
        if number % EVERY:
            continue
        damaged = zip_of({"state.json": _write(files, tables, table, index, path, value)})
        target = ref_of(tenant, f"d{number}")
        refusal = await _find_refusal(database, damaged, target)
        assert "\n" not in refusal
        if refusal:
            continue
        kept += 1
        await _expect_answers(api, target.chat_id, f"{table}.{path} = {value!r}")
    assert kept > 0
    found = await connection.fetchval(
        "SELECT count(*) FROM chats WHERE tenant = $1 AND chat_id LIKE 'd%' AND line_status = 'current'", tenant
    )
    assert found == kept


async def _find_refusal(database: Database, vault: bytes, target: ChatRef) -> str:
    """Why an import of the vault is refused, or "" after an import."""
    try:
        await restore(database, vault, target)
    except (InvalidVault, Forbidden) as error:
        return str(error)
    return ""


async def _expect_answers(api: httpx.AsyncClient, chat_id: str, which: str) -> None:
    url = f"/v1/chats/{chat_id}"
    answers = [await api.get(f"{url}{page}") for page in (*_PAGES, *_REST)]
    answers.append(await api.post(f"{url}/memories/search", json={"query": "lamp"}))
    answers.append(await api.post(f"{url}/messages", json={"messages": [said(901), said(902)]}))
    answers.append(await api.get(f"{url}/context"))
    answers.append(await api.post(f"{url}/diary", json={"content": "A quiet evening.", "character": "Kai"}))
    answers.append(await api.post(f"{url}/sessions/break"))
    for answer in answers:
        assert answer.status_code < 500, f"{which}: {answer.request.method} {answer.request.url} {answer.text}"
    assert answers[-4].status_code == 201, f"{which}: {answers[-4].text}"


def _list_paths(tables: dict[str, list[Any]]) -> Iterator[tuple[str, int, Path]]:
    """The first value at each path; positions in lists do not make a path another one."""
    seen = set[tuple[str, ...]]()
    for table, rows in tables.items():
        for index, row in enumerate(rows):
            for path in _walk(row, ()):
                name = (table, *("0" if isinstance(part, int) else part for part in path))
                if name not in seen:
                    seen.add(name)
                    yield table, index, path


def _walk(value: Any, path: Path) -> Iterator[Path]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from _walk(inner, (*path, name))


def _choose(chosen: random.Random, former: Any) -> Any:
    """Another value than the former one: in half of the cases one of the same type."""
    close: list[Any] = []
    match former:
        case bool():
            close = [not former]
        case int():
            close = [0, 1, former + 1, 999_999_999]
        case str():
            close = ["", f"{former}q", "01a21f9d-3f8f-7296-aa80-36fff94b23f3", "q" * 300]
        case list():
            close = [[], [*former, *former], [None]]
        case dict():
            close = [{}, former | {"q": 5}]
    values = close if close and chosen.random() < 0.5 else _VALUES
    return chosen.choice([one for one in values if one != former or type(one) is not type(former)])


def _find(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _write(files: Files, tables: dict[str, list[Any]], table: str, index: int, path: Path, value: Any) -> bytes:
    """`state.json` with another value at a path of one row."""
    row = orjson.loads(orjson.dumps(tables[table][index]))
    _find(row, path[:-1])[path[-1]] = value
    lines = files["state.json"].split(b"\n")
    at = lines.index(f'"{table}": ['.encode()) + 1 + index
    comma = b"," if lines[at].endswith(b",") else b""
    lines[at] = orjson.dumps(row) + comma
    return b"\n".join(lines)
