"""The model's tools over HTTP: listed, called, and called again by a frontend that heard no answer."""

import asyncio

import httpx
import pytest
from fastapi import FastAPI

from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.registry import LAYERS
from tests.api.path_parameters import SCHEMA
from tests.conftest import NOON, client_of
from tests.diary.diaries import KAI, MEMORY, MIRA, change, contents, discard, entries, keep_diary, save
from tests.talk import Json, append, cut_off, get, hide, ok, put, said, soft_delete, talk

URL = "/v1/chats/c/tools/save_memory"


async def test_the_tools_are_listed_as_each_provider_takes_them(api: httpx.AsyncClient) -> None:
    openai, *_ = ok(await api.get("/v1/tools"), 200)["tools"]
    assert openai == ok(await api.get("/v1/tools", params={"format": "openai"}), 200)["tools"][0]
    assert (openai["type"], openai["function"]["name"]) == ("function", "save_memory")
    anthropic, *_ = ok(await api.get("/v1/tools", params={"format": "anthropic"}), 200)["tools"]
    assert anthropic["name"] == "save_memory"
    assert anthropic["input_schema"] == openai["function"]["parameters"]
    refused = ok(await api.get("/v1/tools", params={"format": "text"}), 422)
    assert refused["errors"][0]["loc"] == ["query", "format"]


@pytest.mark.parametrize(
    ("settings", "offered", "left_out"),
    [
        ({"preset": "memo"}, "set_fact", "save_memory"),
        ({"preset": "diary"}, "save_memory", ""),
        ({"preset": "diary", "facts": {"enabled": False}}, "save_memory", "set_fact"),
    ],
)
async def test_a_chat_is_offered_what_its_layers_can_do(
    api: httpx.AsyncClient, settings: Json, offered: str, left_out: str
) -> None:
    await put(api, settings=settings)
    tools = ok(await api.get("/v1/tools", params={"chat_id": "c"}), 200)["tools"]
    names = {tool["function"]["name"] for tool in tools}
    assert offered in names
    assert left_out not in names
    everything = ok(await api.get("/v1/tools"), 200)["tools"]
    assert {"set_fact", "save_memory"} <= {tool["function"]["name"] for tool in everything}
    assert ok(await api.get("/v1/tools", params={"chat_id": "unknown"}), 404)["code"] == "chat_not_found"


async def test_a_call_says_in_words_what_was_done(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    answer = await save(api)
    assert answer["ok"] is True
    assert answer["result"].startswith("It is written in your diary")
    assert await contents(api) == [MEMORY]


async def test_a_deletion_hides_an_entry_and_a_truncation_deletes_it(api: httpx.AsyncClient) -> None:
    schema = SCHEMA["paths"]["/v1/chats/{chat_id}/tools/{tool}"]["post"]
    assert "cut off" in schema["description"]
    await keep_diary(api)
    await append(api, talk(1, 2))
    await save(api)
    await soft_delete(api, "m2")
    assert [entry["in_prompt"] for entry in await entries(api)] == [False]
    await cut_off(api, 2)
    assert await contents(api) == []


async def test_a_call_sent_again_adds_no_second_entry(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    assert await save(api) == await save(api)
    clock.step(600)
    await save(api)
    assert len(await entries(api)) == 1
    clock.step(1)
    await save(api)
    assert len(await entries(api)) == 2


async def test_racing_retries_leave_one_entry(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await asyncio.gather(*(save(api) for _ in range(8)))
    assert len(await entries(api)) == 1


async def test_the_same_words_later_or_by_another_are_a_new_entry(api: httpx.AsyncClient) -> None:
    await keep_diary(api, KAI, MIRA)
    await save(api, character="Kai")
    await save(api, character="Mira")
    await append(api, [said(1)])
    await save(api, character="Kai")
    await save(api, "Something else.", character="Kai")
    assert [entry["character"] for entry in await entries(api)] == ["Kai", "Mira", "Kai", "Kai"]


async def test_a_retry_does_not_restore_a_deleted_entry(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await save(api)
    assert (await save(api))["result"].startswith("It is written in your diary")
    await discard(api, (await entries(api))[0]["id"])
    result = (await save(api))["result"]
    assert result.startswith("The user has deleted this entry from your diary, so it is not written again.")
    assert await entries(api) == []
    assert len((await get(api, "/tools/calls"))["items"]) == 1


async def test_a_retry_is_one_also_after_the_words_were_edited(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    await save(api)
    await change(api, (await entries(api))[0]["id"], "Mira asked for nothing.")
    await save(api)
    assert await contents(api) == ["Mira asked for nothing."]
    await save(api, "Mira asked for nothing.")  # was never said by the character itself
    assert len(await entries(api)) == 2


async def test_a_retry_is_one_also_if_its_reply_is_hidden(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    await hide(api, (2, 2))
    await save(api, message_id="m2")
    await save(api, message_id="m2")
    await hide(api, (2, 2), hidden=False)
    assert len(await entries(api)) == 1


@pytest.mark.parametrize(
    ("body", "told", "loc"),
    [
        ("{}", "content is missing", ["body", "content"]),
        ('{"content": ""}', "content is empty", ["body", "content"]),
        ('{"content": " \\n"}', "content is empty", ["body", "content"]),
        ('{"content": null}', "content must be a string", ["body", "content"]),
        ('{"content": "nul \\u0000"}', "content may not contain the NUL character", ["body", "content"]),
        ('{"content": "x", "date": "y"}', "There is an argument that the tool does not take", ["body", "date"]),
        ('{"content": "' + "x" * 4_001 + '"}', "content is too long: at most 4,000 characters", ["body", "content"]),
        ('"Mira came."', "The arguments must be one JSON object", ["body"]),
        ("[]", "The arguments must be one JSON object", ["body"]),
        ('{"content": "Mira', "The arguments are not valid JSON", ["body"]),
        ("", "The arguments are not valid JSON", ["body"]),
    ],
)
async def test_wrong_arguments_get_an_error_that_a_model_can_use(
    api: httpx.AsyncClient, body: str, told: str, loc: list[str]
) -> None:
    await keep_diary(api)
    refused = ok(await api.post(URL, content=body, headers={"Content-Type": "application/json"}), 422)
    assert refused["code"] == "wrong_arguments"
    assert refused["detail"] == f'{told}. Call save_memory with {{"content":"…"}}.'
    assert refused["errors"][0]["loc"] == loc
    assert await entries(api) == []


async def test_a_call_without_the_json_content_type_is_explained(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    refused = ok(await api.post(URL, content=b'{"content": "x"}', headers={"Content-Type": "text/plain"}), 422)
    assert "Content-Type: application/json" in refused["detail"]


async def test_an_unknown_tool_is_answered_with_those_there_are(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    refused = ok(await api.post("/v1/chats/c/tools/remember", json={"content": "x"}), 404)
    known = ", ".join([*(tool.name for layer in LAYERS for tool in layer.tools), "memory_search"])
    assert (refused["code"], refused["detail"]) == (
        "tool_not_found",
        f"There is no such tool. The tools are: {known}.",
    )


async def test_a_call_for_a_chat_that_is_not_there_is_refused(api: httpx.AsyncClient) -> None:
    await save(api, status=404)
    ok(await api.post("/v1/chats/no chat/tools/save_memory", json={"content": "x"}), 422)


async def test_a_call_needs_the_write_scope_and_a_list_the_read_scope(
    api: httpx.AsyncClient, app: FastAPI, database: Database, tenant: str
) -> None:
    await keep_diary(api)
    async with database.unit_of_work() as db_session:
        reading = await create_key(db_session, tenant, ["read"], NOON)
    async with client_of(app, reading.text) as reader, client_of(app, None) as nobody:
        ok(await reader.get("/v1/tools"), 200)
        ok(await reader.post(URL, json={"content": "x"}), 403)
        ok(await nobody.get("/v1/tools"), 401)
        ok(await nobody.post(URL, json={"content": "x"}), 401)
    assert await entries(api) == []
