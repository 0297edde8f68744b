"""What a browser token of a chat sees and writes, with and without the flag `user_scope` of its key."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from app.keys.service import create_key
from app.kit.db import Database
from app.knowledge.liveness import CHAT_ITSELF, OWNERS_OF_CHAT, TENANT_KEY, keep_to_chat
from tests.conftest import NOON, client_of
from tests.diary.sharing import KEEPING_ONE, cut, save_in
from tests.talk import Json, append, ok, put, talk

SETTINGS: Json = {
    "history": KEEPING_ONE,
    "memos": {"enabled": False},
    "facts": {"enabled": True},
    "blocks": {"enabled": True},
    "memories": {"learn_scope": "user"},
    "diary": {"scope": "character"},
    "recall": {"mode": "off"},
}
OF_SCOPE = {
    "chat": "/v1/chats/c",
    "character": "/v1/users/mira/characters/Kai",
    "user": "/v1/users/mira",
    "global": "/v1",
}
LABELS = {"character": "persona", "user": "user", "global": "context"}
SCOPES = frozenset(OF_SCOPE)
WIDE = SCOPES - {"chat"}


def words(kind: str, scopes: frozenset[str] = SCOPES) -> set[str]:
    """The words that only the texts of one kind have, one word for each scope."""
    return {f"{kind}{scope}" for scope in scopes}


LEAKS = words("fact", WIDE) | words("block", WIDE) | words("memory", WIDE) | {"taughtuser", "diaryelsewhere"}
"""Every word of a scope that is wider than the chat, or of another chat."""

FACTS = words("fact") | {"taughtuser"}
IN_PROMPT = FACTS | words("block") | words("memory") | {"diaryelsewhere"}
FOUND = FACTS | words("memory") | {"diaryelsewhere"}
QUERY = {"query": "lantern", "limit": 50}


class Read(NamedTuple):
    """A read of the chat, and the words that it shows to a full key; `{…}` in the path is an id of `Stage.ids`."""

    method: str
    path: str
    found: set[str]
    json: Any = None


READS = {
    "context": Read("GET", "context", IN_PROMPT),
    "its post": Read("POST", "context", IN_PROMPT, {"format": "text"}),
    "of a line": Read("GET", "context?line={line}", IN_PROMPT),
    "before": Read("GET", "context?before={newest}", FACTS | words("block")),
    "with recall": Read("GET", "context?recall=auto&query=lantern&max_tokens=8000", IN_PROMPT),
    "of an append": Read("POST", "messages", IN_PROMPT, {"messages": talk(1, 1), "context": {}}),
    "facts": Read("GET", "facts", FACTS),
    **{f"fact of {scope}": Read("GET", f"facts/lantern_{scope}", {f"fact{scope}"}) for scope in OF_SCOPE},
    **{f"values of {scope}": Read("GET", f"facts/lantern_{scope}/history", {f"fact{scope}"}) for scope in OF_SCOPE},
    "blocks": Read("GET", "blocks", words("block") | words("memory")),
    "block": Read("GET", "blocks/context", words("block", frozenset({"chat", "global"}))),
    "block of memories": Read("GET", "blocks/facts", words("memory")),
    "block of the user": Read("GET", "blocks/user", {"blockuser"}),
    "block texts": Read("GET", "blocks/context/history", words("block", frozenset({"chat", "global"}))),
    "texts of memories": Read("GET", "blocks/facts/history", words("memory")),
    "memories": Read("GET", "memories", words("memory")),
    **{f"memory of {scope}": Read("GET", f"memories/{{memory{scope}}}", {f"memory{scope}"}) for scope in OF_SCOPE},
    **{
        f"memory texts of {scope}": Read("GET", f"memories/{{memory{scope}}}/history", {f"memory{scope}"})
        for scope in OF_SCOPE
    },
    "search": Read("POST", "memories/search", FOUND, QUERY),
    "get_facts": Read("POST", "tools/get_facts", FACTS, {}),
    "memory_search": Read("POST", "tools/memory_search", FOUND, QUERY),
    "memory_log": Read("POST", "tools/memory_log", FACTS | words("memory"), {}),
    "forget_fact": Read("POST", "tools/forget_fact", {"lantern_user", "lantern_chat"}, {"key": "none"}),
    "calls": Read("GET", "tools/calls", {"taughtuser"}),
    "shared": Read("GET", "diary/shared", {"diaryelsewhere"}),
    "diary": Read("GET", "diary", {"diarychat"}),
    "inclusion": Read("GET", "inclusion", {"fact:{taught}"}),
    "state": Read("GET", "state", FACTS | words("block") | words("memory")),
}
SEEN_BY_ALL = {"factchat", "blockchat", "memorychat", "diarychat", "lantern_chat"}


class Stage(NamedTuple):
    """A chat that sees something in each scope, the ids of what it sees, and its callers."""

    ids: Mapping[str, str]
    full: httpx.AsyncClient
    flagged: httpx.AsyncClient
    plain: httpx.AsyncClient

    async def read(self, client: httpx.AsyncClient, read: Read) -> httpx.Response:
        """Send a read."""
        return await client.request(read.method, f"/v1/chats/c/{read.path.format(**self.ids)}", json=read.json)


async def _token(client: httpx.AsyncClient, **limits: Any) -> str:
    wanted = {"chat_id": "c", "scopes": ["read", "write"], "ttl_s": 600} | limits
    return str(ok(await client.post("/v1/tokens", json=wanted), 201)["token"])


async def _fill(api: httpx.AsyncClient) -> dict[str, str]:
    """Write a fact, a block and a memory in each scope, and a diary entry in each of two chats; return ids."""
    ids = {}
    for chat_id in ("d", "c"):
        await put(api, chat_id, user_id="mira", characters=[{"name": "Kai"}], settings=SETTINGS)
        await append(api, talk(1, 2), chat_id)
    await save_in(api, "d", "The lantern diaryelsewhere went out.")
    await save_in(api, "c", "The lantern diarychat burns.")
    taught = {"key": "lantern_taught", "value": "taughtuser"}
    ok(await api.post("/v1/chats/c/tools/set_fact", json=taught), 200)
    for scope, path in OF_SCOPE.items():
        fact = await api.put(f"{path}/facts/lantern_{scope}", json={"value": f"fact{scope}"})
        assert fact.status_code == 201, fact.text
        if scope in LABELS:
            block = await api.put(f"{path}/blocks/{LABELS[scope]}", json={"text": f"block{scope}"})
            assert block.status_code == 201, block.text
        memory = {"content": f"A lantern: memory{scope}", "importance": 0.9}
        ids[f"memory{scope}"] = ok(await api.post(f"{path}/memories", json=memory), 201)["id"]
    edit = {"operation": "append", "content": "blockchat"}
    ok(await api.post("/v1/chats/c/blocks/context/edit", json=edit), 200)
    await cut(api, "c")
    ids["taught"] = ok(await api.get("/v1/users/mira/facts/lantern_taught"), 200)["id"]
    ids["line"] = ok(await api.get("/v1/chats/c"), 200)["line"]
    messages = ok(await api.get("/v1/chats/c/messages", params={"limit": 500}), 200)["items"]
    return ids | {"newest": max(messages, key=lambda one: int(one["seq"]))["id"]}


@pytest.fixture
async def stage(app: FastAPI, api: httpx.AsyncClient, database: Database, tenant: str) -> AsyncIterator[Stage]:
    """A full key, and a token of the chat of a key with the flag and of one without it."""
    async with database.unit_of_work() as db_session:
        flagged_key = (await create_key(db_session, tenant, ["read", "write"], NOON, user_scope=True)).text
    ids = await _fill(api)
    async with AsyncExitStack() as stack:
        flagged_server = await stack.enter_async_context(client_of(app, flagged_key))
        flagged = await stack.enter_async_context(client_of(app, await _token(flagged_server)))
        plain = await stack.enter_async_context(client_of(app, await _token(api)))
        yield Stage(ids, api, flagged, plain)


def _leaks(answer: httpx.Response, ids: Mapping[str, str]) -> set[str]:
    return {word for word in LEAKS | {f"fact:{ids['taught']}"} if word in answer.text}


async def test_reads_show_only_the_scopes_that_the_key_permits(stage: Stage) -> None:
    wrong = []
    for name, read in READS.items():
        found = {word.format(**stage.ids) for word in read.found}
        for who in ("full", "flagged"):
            answer = await stage.read(getattr(stage, who), read)
            missing = {word for word in found if word not in answer.text}
            if missing or answer.status_code not in (200, 201):
                wrong.append(f"{name}, {who}: {answer.status_code} lacks {sorted(missing)}")
        answer = await stage.read(stage.plain, read)
        if leaks := _leaks(answer, stage.ids):
            wrong.append(f"{name} leaks {sorted(leaks)}")
        missing = {word for word in found & SEEN_BY_ALL if word not in answer.text}
        if missing or answer.status_code not in (200, 201, 404):
            wrong.append(f"{name}, plain: {answer.status_code} lacks {sorted(missing)}")
    assert not wrong, "\n".join(wrong)


async def test_a_user_id_does_not_widen_a_token_of_a_chat(app: FastAPI, stage: Stage) -> None:
    async with client_of(app, await _token(stage.full, user_id="mira")) as both:
        assert not _leaks(await stage.read(both, READS["context"]), stage.ids)
    async with client_of(app, await _token(stage.full, user_id="mira", chat_id=None)) as of_user:
        assert _leaks(await stage.read(of_user, READS["context"]), stage.ids) >= LEAKS


async def test_writes_stay_in_the_chat(stage: Stage) -> None:
    for who, scope in (("flagged", "user"), ("plain", "chat")):
        client, key = getattr(stage, who), f"by_{who}"
        ok(await client.post("/v1/chats/c/tools/set_fact", json={"key": key, "value": "new"}), 200)
        block = {"block": "user", "operation": "append", "content": key}
        result = ok(await client.post("/v1/chats/c/tools/memory_block_update", json=block), 200)["result"]
        assert key in result
        assert ("blockuser" in result) == (scope == "user")
        fact = ok(await stage.full.get(f"/v1/chats/c/facts/{key}"), 200)
        assert fact["scope"] == scope
        of_user = ok(await stage.full.get("/v1/users/mira/blocks/user"), 200)["text"]
        assert (key in of_user) == (scope == "user")


async def test_a_limited_token_cannot_change_wider_scopes(stage: Stage) -> None:
    memory = stage.ids["memoryuser"]
    for method, path, body in (
        ("DELETE", "facts/lantern_user", None),
        ("PATCH", f"memories/{memory}", {"importance": 0.1}),
        ("DELETE", f"memories/{memory}", None),
        ("POST", "blocks/user/edit", {"operation": "search_replace", "search_pattern": "blockuser", "content": "x"}),
    ):
        answer = await stage.plain.request(method, f"/v1/chats/c/{path}", json=body)
        assert answer.status_code in (404, 409), (path, answer.text)
        assert not _leaks(answer, stage.ids)
    said = ok(await stage.plain.post("/v1/chats/c/tools/forget", json={"memory_id": memory}), 200)["result"]
    assert said.startswith("There is no memory")
    assert "memoryuser" in (await stage.full.get("/v1/chats/c/memories")).text


@pytest.mark.parametrize("given", [{"memories": {"learn_scope": "global"}}, {"diary": {"scope": "character"}}])
async def test_a_limited_token_cannot_widen_a_scope_setting(app: FastAPI, api: httpx.AsyncClient, given: Json) -> None:
    await put(api)
    async with client_of(app, await _token(api)) as plain:
        refused = await plain.put("/v1/chats/c", json={"settings": given})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        await put(api, settings=given, status=200)
        await put(plain, settings=given, status=200)
        narrow = {section: dict.fromkeys(fields, "chat") for section, fields in given.items()}
        await put(plain, settings=narrow, status=200)


async def test_no_limited_token_can_write_for_all_users(app: FastAPI, stage: Stage) -> None:
    given, chat = {"memories": {"learn_scope": "global"}}, "/v1/chats/c"
    await put(stage.full, "other", user_id="mira", settings=given)
    vault = await stage.full.get("/v1/chats/other/export", params={"format": "vault"})
    async with client_of(app, await _token(stage.full, user_id="mira", chat_id=None)) as of_user:
        for client in (of_user, stage.flagged):
            refused = await client.put(chat, json={"settings": given})
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            ok(await client.put(chat, json={"settings": {"memories": {"learn_scope": "character"}}}), 200)
        imported = await of_user.post("/v1/import", params={"format": "vault", "chat_id": "new"}, content=vault.content)
        assert (imported.status_code, imported.json()["code"]) == (403, "forbidden")
        await put(stage.full, settings=given, status=200)
        ok(await of_user.put(chat, json={"settings": given}), 200)  # unchanged


@pytest.mark.parametrize("given", [{"memories": {"learn_scope": "global"}}, {"diary": {"scope": "character"}}])
async def test_no_older_line_widens_a_scope_for_a_token(app: FastAPI, stage: Stage, given: Json) -> None:
    """Neither a restored checkpoint nor a switch brings back a wider scope than the token may choose."""
    chat = "/v1/chats/c"
    await put(stage.full, settings=given, status=200)
    ok(await stage.full.post(f"{chat}/checkpoints", json={"name": "wide"}), 201)
    wide = ok(await stage.full.get(chat), 200)["line"]
    ok(await stage.full.post(f"{chat}/checkpoints/wide/restore"), 201)
    narrow = {section: dict.fromkeys(fields, "chat") for section, fields in given.items()}
    await put(stage.full, settings=narrow, status=200)
    ok(await stage.full.post(f"{chat}/checkpoints", json={"name": "narrow"}), 201)
    async with client_of(app, await _token(stage.full, user_id="mira", chat_id=None)) as of_user:
        for client in (stage.plain, of_user, stage.flagged):
            may_widen = "diary" in given and client is not stage.plain
            for path, done in ((f"lines/{wide}/switch", 200), ("checkpoints/wide/restore", 201)):
                ok(await client.post(f"{chat}/checkpoints/narrow/restore"), 201)
                before = ok(await stage.full.get(chat), 200)
                answer = await client.post(f"{chat}/{path}")
                assert answer.status_code == (done if may_widen else 403), (path, answer.text)
                assert (ok(await stage.full.get(chat), 200)["line"] != before["line"]) == may_widen


async def test_a_fork_of_a_token_learns_nothing_for_all_users(app: FastAPI, stage: Stage) -> None:
    """Otherwise the fork would keep the scope `global` after a key has taken it from the original chat."""
    given: Json = {"memories": {"learn_scope": "global", "half_life_days": 3}, "diary": {"scope": "character"}}
    await put(stage.full, settings=given, status=200)
    async with client_of(app, await _token(stage.full, user_id="mira", chat_id=None)) as of_user:
        for client, scope in ((of_user, "chat"), (stage.full, "global")):
            ok(await client.post("/v1/chats/c/fork", json={"chat_id": scope, "at_seq": 2}), 201)
            settings = ok(await stage.full.get(f"/v1/chats/{scope}"), 200)["settings"]
            assert (settings["memories"]["learn_scope"], settings["memories"]["half_life_days"]) == (scope, 3)
            assert settings["diary"]["scope"] == "character"
        ok(await of_user.post("/v1/chats/chat/tools/set_fact", json={"key": "rule", "value": "Obey."}), 200)
    assert ok(await stage.full.get("/v1/chats/chat/facts/rule"), 200)["scope"] == "chat"


async def test_a_tag_is_valid_only_for_one_kind_of_caller(stage: Stage) -> None:
    path = "/v1/chats/c/context"
    tags = {who: (await getattr(stage, who).get(path)).headers["ETag"] for who in ("full", "flagged", "plain")}
    assert tags["full"] == tags["flagged"] != tags["plain"]
    for who, tag in tags.items():
        for other in tags.values():
            answer = await getattr(stage, who).get(path, headers={"If-None-Match": other})
            assert answer.status_code == (304 if other == tag else 200)


async def test_recall_of_one_caller_pauses_nothing_for_others(stage: Stage) -> None:
    path = "/v1/chats/c/context?recall=auto&query=lamp"
    seen = []
    for first in (5, 7, None):
        seen.append([one["id"] for one in ok(await stage.plain.get(path), 200)["recalled"]])
        if first:
            await append(stage.full, talk(first, first + 1))
    assert seen[0] == seen[1] != seen[2]  # nothing comes in three turns running
    assert [one["id"] for one in ok(await stage.full.get(path), 200)["recalled"]] == seen[0]


@pytest.mark.parametrize("wider", ["SELECT c.user_key", f"SELECT {TENANT_KEY}", "SELECT c.tenant"])
def test_a_query_cannot_leave_the_chat(wider: str) -> None:
    assert keep_to_chat(f"SELECT FROM ({OWNERS_OF_CHAT}) AS o") == f"SELECT FROM ({CHAT_ITSELF}) AS o"
    with pytest.raises(ValueError, match="more than the chat itself"):
        keep_to_chat(f"{OWNERS_OF_CHAT} UNION ALL {wider}")


async def test_other_users_and_tenants_see_nothing(app: FastAPI, database: Database, stage: Stage, tenant: str) -> None:
    await put(stage.full, "other", user_id="ren", characters=[{"name": "Kai"}], settings=SETTINGS)
    seen = LEAKS - words("fact", frozenset({"global"})) - words("block", frozenset({"global"})) - {"memoryglobal"}
    of_other = (await stage.full.get("/v1/chats/other/context")).text
    assert not {word for word in seen if word in of_other}
    async with database.unit_of_work() as db_session:
        stranger = await create_key(db_session, f"t-{uuid4().hex}", ["read", "write"], NOON, user_scope=True)
    async with client_of(app, stranger.text) as server:
        await put(server, "c", user_id="mira", characters=[{"name": "Kai"}], settings=SETTINGS)
        async with client_of(app, await _token(server)) as client:
            for name in ("context", "facts", "memories", "blocks", "search", "shared", "state"):
                assert not _leaks(await stage.read(client, READS[name]), stage.ids)
