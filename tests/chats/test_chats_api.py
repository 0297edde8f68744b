"""Chats over HTTP: create, merge, read, list, erase; presets."""

import asyncio
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI

from app.chats.presets import PRESETS
from app.chats.settings import schema
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database, Table
from app.kit.ids import chat_key
from tests.layers.samples import SAMPLES
from tests.statements import watched
from tests.talk import Json, append, get, ok, put, said, talk, walk

WHOLE: Json = {
    "user_id": "mira",
    "characters": [
        {"id": str(UUID(int=1)), "name": "Kai", "aliases": [], "persona": "A lighthouse keeper.", "disabled": False},
        {"id": str(UUID(int=2)), "name": "Ren", "aliases": [], "persona": "", "disabled": True},
    ],
    "user_name": "Mira",
    "user_persona": "Mira, a cartographer.",
    "system_prompt": "You are Kai.",
    "time_zone": "Europe/Berlin",
    "language": "en-GB",
    "metadata": {"theme": "dusk", "深い": [1, 2.5, None, {"a": True}]},
}


async def test_a_chat_is_created_once_and_then_merged_into(api: httpx.AsyncClient) -> None:
    made = await put(api, **WHOLE, settings={"memos": {"every_messages": 4}})
    assert {name: made[name] for name in WHOLE} == WHOLE
    assert made["counters"] == {"messages": 0, "turns": 0, "tokens": 0, "memos": 0}
    assert (made["anchor_seq"], made["head_seq"], made["work"]) == (1, 0, {"due": 0, "failed": 0})
    assert made["created_at"] == made["last_active_at"] == "2026-04-01T12:00:00Z"
    UUID(made["line"])

    merged = await put(api, status=200, system_prompt="You are Ren.")
    assert merged == made | {"system_prompt": "You are Ren."}
    assert await get(api, "") == merged


async def test_in_a_put_null_clears_and_what_is_left_out_stays(api: httpx.AsyncClient) -> None:
    made = await put(api, **WHOLE, settings={"memos": {"every_messages": 4}})
    nothing: Json = dict.fromkeys([*WHOLE, "settings"])
    cleared = await put(api, status=200, **nothing)
    bare: Json = {
        "user_id": None,
        "characters": [],
        "user_name": None,
        "user_persona": None,
        "system_prompt": None,
        "time_zone": "UTC",
        "language": None,
        "metadata": {},
        "settings": schema().whole().model_dump(),
    }
    assert cleared == made | bare


async def test_settings_merge_and_null_returns_to_the_presets_value(api: httpx.AsyncClient) -> None:
    budget = {"type": "percent", "value": 10}
    await put(api, settings={"preset": "diary", "history": {"keep_messages": 30}, "memos": {"budget": budget}})
    settings = (await put(api, status=200, settings={"history": {"grow_messages": 9}, "token_factor": 1.35}))[
        "settings"
    ]
    assert (settings["history"]["keep_messages"], settings["history"]["grow_messages"]) == (30, 9)
    assert (settings["token_factor"], settings["memos"]["budget"]) == (1.35, budget)

    back = {"history": {"keep_messages": None}, "memos": {"budget": None}, "token_factor": None}
    settings = (await put(api, status=200, settings=back))["settings"]
    assert (settings["history"]["keep_messages"], settings["history"]["grow_messages"]) == (15, 9)
    assert (settings["token_factor"], settings["memos"]["budget"]) == (1.0, None)

    settings = (await put(api, status=200, settings={"preset": "memo"}))["settings"]
    assert (settings["history"]["keep_messages"], settings["history"]["grow_messages"]) == (16, 9)


async def test_metadata_merges_and_null_removes_a_key(api: httpx.AsyncClient) -> None:
    await put(api, metadata={"a": {"b": 1, "c": 2}, "d": [1]})
    merged = await put(api, status=200, metadata={"a": {"b": None, "e": 3}, "d": [2]})
    assert merged["metadata"] == {"a": {"c": 2, "e": 3}, "d": [2]}


@pytest.mark.parametrize(
    ("body", "location"),
    [
        ({"nope": 1}, ["nope"]),
        ({"settings": {"nope": 1}}, ["settings", "nope"]),
        ({"settings": {"memos": {"nope": 1}}}, ["settings", "memos", "nope"]),
        ({"settings": {"memos": {"every_messages": 65}}}, ["settings", "memos", "every_messages"]),
        ({"settings": {"memos": {"budget": {"type": "percent"}}}}, ["settings", "memos", "budget", "value"]),
        ({"settings": {"preset": "memos"}}, ["settings", "preset"]),
        ({"settings": []}, ["settings"]),
        ({"characters": [{"persona": "nameless"}]}, ["characters", 0, "name"]),
        ({"characters": [{"name": "Kai"}, {"name": "Kai"}]}, ["characters"]),
        ({"user_id": ""}, ["user_id"]),
        ({"user_id": "u" * 201}, ["user_id"]),
        ({"time_zone": "Mars/Olympus"}, ["time_zone"]),
        ({"time_zone": "localtime"}, ["time_zone"]),  # a name that some machines know
        ({"language": "not a language"}, ["language"]),
        ({"metadata": {"a": "x" * 16_384}}, ["metadata"]),
        ({"system_prompt": "a\0b"}, ["system_prompt"]),
    ],
)
async def test_an_invalid_put_names_the_field_and_creates_no_chat(
    api: httpx.AsyncClient, body: dict[str, Any], location: list[str | int]
) -> None:
    problem = await put(api, status=422, **body)
    assert problem["errors"][0]["loc"] == ["body", *location]
    await get(api, "", 404)


async def test_settings_that_do_not_fit_together_name_the_field(api: httpx.AsyncClient) -> None:
    await put(api, settings={"history": {"max_messages": 40}})
    problem = await put(api, status=422, settings={"history": {"grow_messages": 24}})
    assert problem["errors"][0]["loc"] == ["body", "settings", "history", "max_messages"]
    assert (await get(api, ""))["settings"]["history"]["grow_messages"] == 16


async def test_an_invalid_stored_setting_does_not_lock_the_chat(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await put(api, settings={"memos": {"every_messages": 4}})
    async with database.raw() as connection:
        await connection.execute(
            """UPDATE chats SET settings = '{"memos": {"every_messages": 4, "of_old": 1}, "token_factor": 99}'
            WHERE chat_key = $1""",
            chat_key(tenant, "c"),
        )
    assert (await get(api, ""))["settings"] == schema().whole.model_validate(
        {"memos": {"every_messages": 4}}
    ).model_dump()
    await append(api, talk(1, 4), context={})
    await get(api, "/context")
    changed = await put(api, status=200, settings={"memos": {"window": 3}})
    assert (changed["settings"]["memos"]["every_messages"], changed["settings"]["memos"]["window"]) == (4, 3)


@pytest.mark.parametrize("chat_id", ["a", "A.b_c:d@e-9", "x" * 200, "...", "..a", ".a", "-", "." * 200])
async def test_a_chat_id_may_be_any_of_its_characters(api: httpx.AsyncClient, chat_id: str) -> None:
    path = f"/v1/chats/{chat_id.replace('.', '%2E')}"
    assert ok(await api.put(path, json={}), 201)["chat_id"] == chat_id
    assert ok(await api.get(path), 200)["chat_id"] == chat_id


@pytest.mark.parametrize(
    "chat_id", ["x" * 201, "a%20b", "%C3%A9", "a%00", "a%0A", "%E2%80%AEa", "a;b", "a~b", "%2E", "%2E%2E", "." * 201]
)
async def test_a_chat_id_of_other_characters_is_refused_by_name(api: httpx.AsyncClient, chat_id: str) -> None:
    problem = ok(await api.put(f"/v1/chats/{chat_id}", json={}), 422)
    assert problem["errors"][0]["loc"] == ["path", "chat_id"]


async def test_an_unknown_chat_is_a_404_that_says_so(api: httpx.AsyncClient) -> None:
    problem = await get(api, "", 404)
    assert problem == {
        "type": "about:blank",
        "title": "Unknown chat",
        "status": 404,
        "detail": "There is no chat 'c'.",
        "code": "chat_not_found",
        "instance": "/v1/chats/c",
    }


async def test_a_chat_returns_its_counters_and_its_due_work(
    api: httpx.AsyncClient, clock: SteppedClock, dispatcher: Dispatcher
) -> None:
    thought = {"role": "assistant", "content": "Hm.", "kind": "thought"}
    answer = await append(api, [said(1), thought, said(2), said(3), said(5), said(4)])
    clock.step(60)
    answer["messages"] += (await append(api, talk(6, 9)))["messages"]
    chat = await get(api, "")
    assert chat["counters"] == {
        "messages": 10,
        "turns": 3,  # m2, m4 and m8 answer the user; m6 follows an answer
        "tokens": sum(message["tokens"] for message in answer["messages"]),
        "memos": 1,
    }
    assert (chat["head_seq"], chat["work"]) == (10, {"due": 1, "failed": 0})
    assert (chat["created_at"], chat["last_active_at"]) == ("2026-04-01T12:00:00Z", "2026-04-01T12:01:00Z")
    clock.step(2)
    await dispatcher.drain()
    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}


async def test_a_page_of_chats_counts_the_work_of_all_of_them_at_once(app: FastAPI, api: httpx.AsyncClient) -> None:
    for chat_id, last in (("c", 16), ("d", 4), ("e", 8)):
        await append(api, talk(1, last), chat_id)
    async with watched(app.state.database) as statements:
        chats = ok(await api.get("/v1/chats"), 200)["items"]
    assert {chat["chat_id"]: chat["work"]["due"] for chat in chats} == {"c": 2, "d": 0, "e": 1}
    assert len(statements.asked) == 1  # the chats themselves are SQLAlchemy's to ask for, which is not seen here


async def test_chats_are_listed_by_creation_newest_first(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    for n in range(5):
        await put(api, f"chat-{n}")
        clock.step(n % 2)  # some at the very same time
    await append(api, [said(1)], "chat-0")
    pages = await walk(api, "/v1/chats", limit=2)
    assert [len(page) for page in pages] == [2, 2, 1]
    listed = [chat for page in pages for chat in page]
    assert sorted(chat["chat_id"] for chat in listed) == [f"chat-{n}" for n in range(5)]
    times = [chat["created_at"] for chat in listed]
    assert times == sorted(times, reverse=True)
    assert listed[-1] == ok(await api.get(f"/v1/chats/{listed[-1]['chat_id']}"), 200)


async def test_the_chats_of_a_user_are_listed_by_last_activity(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    for n in range(4):
        await put(api, f"chat-{n}", user_id="mira" if n else "someone else")
    for n in (2, 3, 0, 1):
        clock.step(1)
        await append(api, [said(1)], f"chat-{n}")
    pages = await walk(api, "/v1/chats", user_id="mira", limit=2)
    assert [[chat["chat_id"] for chat in page] for page in pages] == [["chat-1", "chat-3"], ["chat-2"]]
    assert await walk(api, "/v1/chats", user_id="nobody") == [[]]


async def test_an_erased_chat_leaves_no_rows_and_frees_its_id(
    api: httpx.AsyncClient, database: Database, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 20))
    clock.step(2)
    await dispatcher.drain()
    await append(api, talk(21, 24))
    first = await get(api, "")
    assert await _tables_with(database, tenant) == {"chats", "messages", "memos", "work"}

    ok(await api.delete("/v1/chats/c"), 204)
    assert await _tables_with(database, tenant) == set()
    await get(api, "", 404)
    ok(await api.delete("/v1/chats/c"), 404)

    again = await append(api, [said(1, content="Another text under an id that was taken.")])
    assert again["messages"][0]["seq"] == 1
    assert (await get(api, ""))["line"] != first["line"]


async def test_erasing_a_user_erases_all_of_their_chats_and_no_other(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    for chat_id, user_id in (("c", "mira"), ("d", "mira"), ("e", "ren")):
        await put(api, chat_id, user_id=user_id)
        await append(api, talk(1, 8), chat_id)
    for _ in range(2):
        ok(await api.delete("/v1/users/mira"), 204)
    assert [chat["chat_id"] for chat in ok(await api.get("/v1/chats"), 200)["items"]] == ["e"]
    assert await _tables_with(database, tenant) == set()
    assert len(ok(await api.get("/v1/chats/e/messages"), 200)["items"]) == 8


async def test_a_user_of_any_id_can_be_erased(api: httpx.AsyncClient) -> None:
    for user_id in ("mira", "auth0|65/mira", "/mira/", "a b?c#d%2F", "美羅"):
        await put(api, user_id=user_id)
        ok(await api.delete(f"/v1/users/{quote(user_id, safe='')}"), 204)
        ok(await api.get("/v1/chats/c"), 404)


@pytest.mark.parametrize("unfit", [".", ".."])  # clients remove it from a URL, also percent-encoded
async def test_ids_that_urls_cannot_carry_are_refused(api: httpx.AsyncClient, unfit: str) -> None:
    for body in ({"user_id": unfit}, {"characters": [{"name": unfit}]}):
        assert "clients remove" in (await put(api, status=422, **body))["errors"][0]["msg"]
    await put(api, characters=[{"name": "Kai"}])
    ok(await api.post("/v1/chats/c/characters/Kai/rename", json={"name": unfit}), 422)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": unfit}), 422)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": unfit}), 422)
    ok(await api.post("/v1/chats/c/messages", json={"messages": [said(1, id=unfit)]}), 422)


async def test_a_chat_can_be_assigned_to_another_user(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira")
    await put(api, user_id="ren", status=200)
    assert await walk(api, "/v1/chats", user_id="mira") == [[]]
    assert len((await walk(api, "/v1/chats", user_id="ren"))[0]) == 1


async def test_presets_list_all_their_settings_with_descriptions(api: httpx.AsyncClient) -> None:
    presets = ok(await api.get("/v1/presets"), 200)
    assert [preset["name"] for preset in presets["items"]] == list(PRESETS)
    for preset in presets["items"]:
        assert preset["description"]
        assert set(preset["settings"]) == set(schema().whole.model_fields)
        assert preset["settings"]["preset"] == preset["name"]
    described = presets["settings_schema"]
    sections = [described, *described["$defs"].values()]
    fields = [field for section in sections for field in section["properties"].items()]
    # A section that says of itself what the field would say of it is only referred to.
    assert [name for name, field in fields if not field.get("description") and "$ref" not in field] == []


@pytest.mark.parametrize(
    ("preset", "history", "expected"),
    [
        ("memo", (16, 16, "batches"), {"off"}),
        ("diary", (15, 5, "folds"), {"inline", "off"}),
        ("scenes", (16, 0, "scenes"), {"off"}),
        ("agent", (16, 16, "every_8"), {"consolidation", "off", "auto"}),
        ("decay", (20, 10, "every_message"), {"consolidation", "off", "auto"}),
        ("companion", (16, 16, "batches"), {"consolidation", "inline", "tool"}),
    ],
)
async def test_a_preset_gives_a_chat_its_defaults(
    api: httpx.AsyncClient, preset: str, history: tuple[int, int, str], expected: set[str]
) -> None:
    settings = (await put(api, settings={"preset": preset}))["settings"]
    found = settings["history"]
    assert (found["keep_messages"], found["grow_messages"], found["edges"]) == history
    layers = {name for name, section in settings.items() if isinstance(section, dict) and section.get("enabled")}
    index = list(PRESETS).index(preset)
    in_presets = [one for sample in SAMPLES.values() for one in sample.in_presets.items()]
    on = {setting.removesuffix(".enabled") for setting, values in in_presets if values[index] is True}
    assert layers | {settings["timestamps"], settings["recall"]["mode"]} == expected | (on & set(settings))
    assert (settings["memos"]["every_messages"], settings["memos"]["window"]) == (8, 15)
    assert (settings["context_tokens"], settings["cache_ttl_s"], settings["token_factor"]) == (32_000, 300, 1.0)


async def test_no_preset_has_a_missing_layer(api: httpx.AsyncClient) -> None:
    presets = ok(await api.get("/v1/presets"), 200)["items"]
    assert {preset["name"]: preset["missing_layers"] for preset in presets} == {name: [] for name in PRESETS}


async def test_every_preset_can_hold_a_conversation(api: httpx.AsyncClient) -> None:
    await asyncio.gather(*(put(api, preset, settings={"preset": preset}) for preset in PRESETS))
    for preset in PRESETS:
        await append(api, talk(1, 60), preset)
        context = ok(await api.get(f"/v1/chats/{preset}/context"), 200)
        assert context["history"]["last_seq"] == 60


async def _tables_with(database: Database, tenant: str) -> set[str]:
    """The tables that hold rows of the tenant's chats `c` and `d`."""
    keys = [chat_key(tenant, chat_id) for chat_id in ("c", "d")]
    columns = {table.name: set(table.c.keys()) & {"chat_key", "owner_key"} for table in Table.metadata.tables.values()}
    async with database.raw() as connection:
        return {
            name
            for name, found in columns.items()
            for column in found
            if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {name} WHERE {column} = ANY($1))", keys)
        }
