"""Whatever is sent, there is an answer to it, and none is a 500: neither to it nor to a later question."""

import asyncio
import os
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import orjson
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.path_parameters import SCHEMA
from tests.api.wild import WILD_TEXTS, nearly, to_json, wild
from tests.talk import Json, append, get, ok, put, said, talk

DEFINITIONS = SCHEMA["components"]["schemas"]
OPERATIONS = [
    (method, path, operation)
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
    if operation["operationId"] not in ("create_key", "revoke_key")  # the tenant's own key has to stay
]
WITH_BODY = [
    pytest.param(
        method, path, operation["requestBody"]["content"]["application/json"]["schema"], id=operation["operationId"]
    )
    for method, path, operation in OPERATIONS
    if "application/json" in operation.get("requestBody", {}).get("content", ())  # tests/transfer has the files
]
QUESTIONS = ["", "/messages", "/context?max_tokens=10000000", "/inclusion", "/memos", "/lines", "/checkpoints"]
QUESTIONS += ["/summary", "/diary", "/scenes", "/recap", "/recap/versions", "/facts", "/blocks", "/memories"]

EXAMPLES = 120 if "TESTS_EXAMPLES" in os.environ else 16
fuzzed = settings(
    max_examples=EXAMPLES,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


class WrittenChat:
    """A chat with something of each kind. Examples share it until a request has changed it."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self._api = api
        self._ids: dict[str, str] | None = None

    async def begin(self) -> dict[str, str]:
        """The values of the parameters of paths."""
        self._ids = self._ids or await self._write()
        return self._ids

    def has_changed(self) -> None:
        """Begin the next example with another chat."""
        self._ids = None

    async def _write(self) -> dict[str, str]:
        api, chat_id = self._api, f"c-{uuid4().hex}"
        await append(api, talk(1, 3), chat_id)
        memo = ok(await api.post(f"/v1/chats/{chat_id}/memos", json={"text": "They met at sea."}), 201)
        entry = ok(await api.post(f"/v1/chats/{chat_id}/diary", json={"content": "She came back."}), 201)
        scene = ok(await api.put(f"/v1/chats/{chat_id}/scenes/breaks/2"), 201)["items"][0]
        memory = ok(await api.post(f"/v1/chats/{chat_id}/memories", json={"content": "She came back."}), 201)
        return {
            "chat_id": chat_id,
            "message_id": "m2",
            "memory_id": memory["id"],
            "memo_id": memo["id"],
            "entry_id": entry["id"],
            "scene_id": scene["id"],
            "tool": "save_memory",
            "name": "Kai",
            "key": "lamp",
            "label": "user",
            "user_id": "mira",
        }


@pytest.fixture
def written(api: httpx.AsyncClient) -> WrittenChat:
    """A chat for the examples of the test."""
    return WrittenChat(api)


@pytest.mark.parametrize(("method", "path", "schema"), WITH_BODY)
@fuzzed
@given(data=st.data())
async def test_no_body_breaks_anything(
    api: httpx.AsyncClient, written: WrittenChat, method: str, path: str, schema: Json, data: st.DataObject
) -> None:
    """Bodies as the schema has them, with something wild in most of them."""
    body = data.draw(nearly(schema, DEFINITIONS))
    ids = await written.begin()
    chat_id = ids["chat_id"]
    url = path.format(**ids)
    answer = await api.request(method, url, content=to_json(body), headers={"Content-Type": "application/json"})
    _check(answer, "body")
    if answer.is_success:
        written.has_changed()
        for question in QUESTIONS:
            ok(await api.get(f"/v1/chats/{chat_id}{question}"), 200)
        ok(await api.get("/v1/chats"), 200)


@fuzzed
@given(data=st.data())
async def test_no_path_or_query_breaks_anything(api: httpx.AsyncClient, data: st.DataObject) -> None:
    method, path, operation = data.draw(st.sampled_from(OPERATIONS))
    path_text = st.sampled_from([*WILD_TEXTS, "c", "m1"]).filter(bool).map(lambda text: text.encode(errors="replace"))
    values: Json = {"path": {}, "query": {}}
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            values["path"][parameter["name"]] = quote(data.draw(path_text)[:2_000], safe="")
        elif data.draw(st.booleans()):
            value = str(data.draw(nearly(parameter["schema"], DEFINITIONS)))[:2_000]
            values["query"][parameter["name"]] = value.encode(errors="replace").decode()
    await append(api, [said(1)], status=201 if not await _exists(api) else 200)
    answer = await api.request(method, path.format(**values["path"]), params=values["query"])
    _check(answer, "path", "query", "body")


@fuzzed
@given(body=st.binary(max_size=60) | wild.map(to_json))
async def test_bytes_that_are_no_request_are_a_422(api: httpx.AsyncClient, body: bytes) -> None:
    answer = await _post(api, body)
    assert answer.status_code == 422, answer.text
    _check(answer, "body")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"\xff\xfe\x00",
        '{"messages": []}'.encode("utf-16"),
        b'{"messages": [{"role": "user", "content": "\xc3"}]}',
        b"[" * 100_000,
        b'{"messages":' * 20_000 + b"1" + b"}" * 20_000,
        b"9" * 100_000,
        b'{"messages": NaN}',
        b'{"messages": [{"role": "user", "content": "x", "importance": NaN}]}',
        b'{"messages": [{"role": "user", "content": "x", "importance": 1e999}]}',
        b'{"messages": [{"role": "user", "content": "x", "metadata": {"a": Infinity}}]}',
        b'{"messages": [{"role": "user", "content": "x", "metadata": {"a": 99999999999999999999999}}]}',
        b'{"messages": [{"role": "user", "content": "x", "metadata": {"a": "\\u0000"}}]}',
        b'{"messages": [{"role": "user", "content": "x", "metadata": {"\\ud800": 1}}]}',
        b'{"messages": [{"role": "user", "content": "x", "metadata": ' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"}]}",
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": [{"role": "user", "content": "\\u0000"}]}',
        b'{"\\udfff": 1}',
    ],
    ids=lambda body: body[:24].decode("latin-1") or "nothing",
)
async def test_a_malformed_body_is_a_422_and_appends_nothing(api: httpx.AsyncClient, body: bytes) -> None:
    answer = await _post(api, body)
    assert answer.status_code == 422, answer.text
    _check(answer, "body")
    await get(api, "", 404)


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "a/b/c", ""])
async def test_a_body_without_a_json_content_type_is_a_422(api: httpx.AsyncClient, content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = await api.post("/v1/chats/c/messages", content=orjson.dumps({"messages": [said(1)]}), headers=headers)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["loc"] == ["body"]


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"]
)
async def test_several_json_content_types_are_accepted(api: httpx.AsyncClient, content_type: str) -> None:
    body = orjson.dumps({"messages": [said(1)]})
    ok(await api.post("/v1/chats/c/messages", content=body, headers={"Content-Type": content_type}), 201)


@pytest.mark.parametrize(
    "path", ["/v1/chats", "/v1/chats/c/messages", "/v1/chats/c/memos", "/v1/chats/c/inclusion", "/v1/work"]
)
async def test_a_cursor_of_garbage_is_a_422(api: httpx.AsyncClient, path: str) -> None:
    await put(api)
    zero = "00000000-0000-0000-0000-000000000000"
    keys: list[Any] = [None, {}, [], [[1]], ["x"], [True], [2**31], [-(2**70)], [1.5], ["1", "2"], ["x", "\0"]]
    keys += [["2026-04-01", zero], ["2026-04-01T12:00:00", zero], ["0001-01-01T00:00:00+14:00", zero], [zero, zero]]
    made = [urlsafe_b64encode(to_json(key)).decode().rstrip("=") for key in keys]
    for cursor in (*made, "x", "=", "%%%", "é", "\0", "A" * 501, "////"):
        answer = await api.get(path, params={"cursor": cursor})
        assert answer.status_code == 422, (cursor, answer.text)
        _check(answer, "query")


async def test_an_invalid_number_is_a_422(api: httpx.AsyncClient) -> None:
    await put(api)
    for name in ("after_seq", "before_seq", "around_seq", "limit"):
        for value in ("-1", "2147483648", "9" * 40, "1.5", "x", "", "NaN", "1e3", "0x10", "\0", "１e"):
            problem = await get(api, "/messages", 422, **{name: value})
            assert problem["errors"][0]["loc"] == ["query", name]


async def test_metadata_is_kept_to_the_last_digit_or_refused(api: httpx.AsyncClient) -> None:
    kept = {
        "big": 2**63,
        "whole": 1e20,
        "most": 1.7976931348623157e308,
        "least": 5e-324,
        "deep": [[[[{}]]]],
        "": "\x7f",
    }
    await put(api, metadata=kept)
    await append(api, [said(1, metadata=kept)])
    assert (await get(api, ""))["metadata"] == kept
    assert (await get(api, "/messages/m1"))["metadata"] == kept


async def test_the_metadata_limit_applies_to_the_merged_value(api: httpx.AsyncClient) -> None:
    await put(api, metadata={"a": "x" * 10_000})
    problem = await put(api, status=422, metadata={"b": "x" * 10_000})
    assert problem["errors"][0]["loc"] == ["body", "metadata"]
    assert set((await get(api, ""))["metadata"]) == {"a"}


async def test_many_bad_requests_at_once_leave_the_service_as_it_was(app: FastAPI, api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    before = await get(api, "/messages")
    bodies = [b"{", b"null", orjson.dumps({"messages": [said(1, content="Another text.")]}), b'{"messages": [1]}']
    answers = await asyncio.gather(*(_post(api, body) for body in bodies * 15))
    assert {answer.status_code for answer in answers} == {409, 422}
    assert await get(api, "/messages") == before


def _check(answer: httpx.Response, *parts: str) -> None:
    """The answer is one that the contract knows; a refusal says what it refuses."""
    assert answer.status_code in (200, 201, 202, 204, 401, 403, 404, 405, 409, 413, 422), answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
    if answer.status_code == 422:
        assert answer.json()["errors"], answer.text
        assert {error["loc"][0] for error in answer.json()["errors"]} <= set(parts)


async def _post(api: httpx.AsyncClient, body: bytes) -> httpx.Response:
    return await api.post("/v1/chats/c/messages", content=body, headers={"Content-Type": "application/json"})


async def _exists(api: httpx.AsyncClient) -> bool:
    return (await api.get("/v1/chats/c")).status_code == 200
