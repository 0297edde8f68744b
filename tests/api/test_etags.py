"""Whatever happens to a chat, an answer that differs has another tag, and one that is known is a 304."""

import os
import random
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.owners import Owner
from app.kit.scopes import raise_scope
from app.kit.settings import Settings
from app.main import create_app
from tests.api.path_parameters import CHAT, SCHEMA, name_of
from tests.conftest import client_of
from tests.scripted_model import ScriptedModel, quoting_memo, refuses
from tests.statements import watched
from tests.talk import Json, add_swipe, append, context, cut_off, edit, get, ok, put, said, soft_delete, talk

STEPS = 30
COURSES = 12 if "TESTS_EXAMPLES" in os.environ else 3
"""The courses that a chat takes at random; each makes everything happen at least once."""
REVALIDATE = "private, no-cache"

TAGGED = [
    (method.upper(), path.removeprefix(CHAT))
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
    if "304" in operation["responses"]
]
"""The operations whose answers have tags: each with its method and its path below the chat."""

OPTIONS: dict[tuple[str, str], list[Json]] = {
    ("GET", "/context"): [
        {},
        {"format": "openai"},
        {"format": "anthropic", "prefill": True},
        {"format": "text", "max_tokens": 1_000},
    ],
    ("POST", "/context"): [{"segments": [{"name": "lore", "text": "112 steps.", "after": "user"}]}],
    ("GET", "/memos"): [{}, {"limit": 1}],
}
"""With what an operation is called, if not only without options."""

WHOLE = [one for one in TAGGED if "{" not in one[1]]
SINGLE = [path for _, path in TAGGED if "{" in path]
"""The paths that read one item of a list."""

READS = [(method, path, options) for method, path in WHOLE for options in OPTIONS.get((method, path), [{}])]


def test_only_operations_with_a_tag_have_options() -> None:
    assert set(OPTIONS) <= set(WHOLE)


class Reader:
    """A client that reads everything after each change, and remembers what it had for each tag."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self._api = api
        self._bodies: dict[tuple[str, str], bytes] = {}
        self._tags: dict[str, str] = {}

    async def read(self) -> None:
        """Read all answers; those of an unknown chat have no tag."""
        lines = ok(await self._api.get("/v1/chats/c/lines"), 200)["items"]
        reads = list(READS)
        for path in SINGLE:
            above, _, parameter = path.rpartition("/")
            items = ok(await self._api.get(f"/v1/chats/c{above}"), 200)["items"]
            reads += [("GET", f"{above}/{name_of(item, parameter.strip('{}'))}", {}) for item in items[:2]]
        paths = [path for method, path in WHOLE if method == "GET"]
        reads += [("GET", path, {"line": line["line"]}) for line in lines[1:3] for path in paths]
        for method, path, options in reads:
            await self._read(method, path, options)

    async def _read(self, method: str, path: str, options: Json) -> None:
        name = f"{method} {path} {options}"
        answer = await self.ask(method, path, options)
        tag = answer.headers["ETag"]
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, REVALIDATE), answer.text
        assert self._bodies.setdefault((name, tag), answer.content) == answer.content, f"{name}: one tag, two answers"
        known = await self.ask(method, path, options, f'"other", {tag}')
        assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", tag)
        assert known.headers["Cache-Control"] == REVALIDATE
        former = self._tags.get(name, '"none"')
        assert (await self.ask(method, path, options, former)).status_code == (304 if former == tag else 200)
        self._tags[name] = tag

    async def ask(self, method: str, path: str, options: Json, known: str | None = None) -> httpx.Response:
        """Send one request."""
        given: Any = {"params": options} if method == "GET" else {"json": options}
        headers = {} if known is None else {"If-None-Match": known}
        return await self._api.request(method, f"/v1/chats/c{path}", headers=headers, **given)


class Chat:
    """Everything that can happen to the chat `c`, one thing at a time."""

    def __init__(
        self,
        api: httpx.AsyncClient,
        dispatcher: Dispatcher,
        clock: SteppedClock,
        model: ScriptedModel,
        database: Database,
        tenant: str,
        dice: random.Random,
    ) -> None:
        self._api, self._dispatcher, self._clock, self._model = api, dispatcher, clock, model
        self._database, self._tenant, self._dice = database, tenant, dice
        self._said = self._named = 0

    async def begin(self) -> None:
        """Create it, with settings under which much happens in few messages."""
        history = {"keep_messages": 6, "grow_messages": 4}
        await put(
            self._api,
            characters=[{"name": "Kai"}],
            user_id="mira",
            settings={
                "preset": "companion",
                "recall": {"mode": "off"},
                "history": history,
                "memos": {"every_messages": 4},
            },
        )
        await self.append()

    def acts(self) -> list[Callable[[], Awaitable[object]]]:
        """All acts."""
        names = [name for name in vars(type(self)) if not name.startswith("_") and name not in ("begin", "acts")]
        return [getattr(self, name) for name in names]

    async def append(self) -> None:
        """Four messages more."""
        first = self._said + 1
        self._said += 4
        await append(self._api, talk(first, self._said))

    async def append_one(self) -> None:
        """One message more."""
        self._said += 1
        await append(self._api, [said(self._said)])

    async def edit(self) -> None:
        """Other words."""
        await self._with_message(lambda m: edit(self._api, m, content=f"Other words {self._dice.random()}."))

    async def mark(self) -> None:
        """What a person marks a message with."""
        mark = self._dice.choice(["excluded", "pinned", "hidden"])
        await self._with_message(lambda m: edit(self._api, m, **{mark: self._dice.random() < 0.6}))

    async def swipe(self) -> None:
        """Another text."""
        await self._with_message(lambda m: add_swipe(self._api, m, f"A swipe {self._dice.random()}."))

    async def delete(self) -> None:
        """A message gone."""
        await self._with_message(lambda m: soft_delete(self._api, m))

    async def cut_off(self) -> None:
        """The end gone."""
        head_seq = (await get(self._api, ""))["head_seq"]
        await cut_off(self._api, max(1, head_seq - self._dice.randrange(4)))

    async def reimport(self) -> None:
        """The chat as a list, at times in another order."""
        items = (await get(self._api, "/messages", limit=500))["items"]
        given = [{"id": item["id"], "role": item["role"], "content": item["content"]} for item in items]
        if len(given) > 2 and self._dice.random() < 0.5:
            given[0], given[1] = given[1], given[0]
        ok(await self._api.put("/v1/chats/c/messages", json={"messages": given}), 200)

    async def settings(self) -> None:
        """Another setting."""
        window = {"memos": {"window": self._dice.randint(1, 5)}}
        await put(self._api, status=200, settings=window, metadata={"n": self._dice.random()})

    async def write_memo(self) -> None:
        """A memory that a person wrote."""
        ok(await self._api.post("/v1/chats/c/memos", json={"text": f"They met {self._dice.random()}."}), 201)

    async def change_memo(self) -> None:
        """A memo edited, pinned, deleted or made again."""
        memos = (await get(self._api, "/memos"))["items"]
        if not memos:
            return
        url = f"/v1/chats/c/memos/{self._dice.choice(memos)['id']}"
        match self._dice.randrange(4):
            case 0:
                ok(await self._api.patch(url, json={"text": f"A lamp {self._dice.random()}."}), 200)
            case 1:
                ok(await self._api.patch(url, json={"pinned": self._dice.random() < 0.5}), 200)
            case 2:
                ok(await self._api.delete(url), 204)
            case _:
                await self._api.post(f"{url}/regenerate", json={"replace_edited": True})

    async def write_diary(self) -> None:
        """An entry."""
        ok(await self._api.post("/v1/chats/c/diary", json={"content": f"A lamp {self._dice.random()}."}), 201)

    async def work(self) -> None:
        """What is due is made."""
        self._clock.step(60)
        await self._dispatcher.drain()

    async def fail(self) -> None:
        """What is due fails, at times for good, and is tried again."""
        self._model.otherwise = refuses(400)
        for _ in range(self._dice.choice([1, work_queue.MAX_ATTEMPTS])):
            self._clock.step(3_600)
            await self._dispatcher.drain()
        self._model.otherwise = quoting_memo
        if self._dice.random() < 0.5:
            ok(await self._api.post("/v1/work/retry", json={"chat_id": "c"}), 200)

    async def claim(self) -> None:
        """A worker takes what is due and dies."""
        self._clock.step(60)
        line = (await get(self._api, ""))["line"]
        async with self._database.unit_of_work() as db_session:
            owner = Owner.of_line(self._tenant, chat_key(self._tenant, "c"), line)
            await work_queue.claim(db_session, owner, limit=1, now=self._clock())

    async def checkpoint(self) -> None:
        """A frozen copy."""
        self._named += 1
        ok(await self._api.post("/v1/chats/c/checkpoints", json={"name": f"n{self._named}"}), 201)

    async def restore(self) -> None:
        """Back to a frozen copy."""
        names = [found["name"] for found in (await get(self._api, "/checkpoints"))["items"]]
        if names:
            ok(await self._api.post(f"/v1/chats/c/checkpoints/{self._dice.choice(names)}/restore"), 201)

    async def switch(self) -> None:
        """Another line."""
        lines = [line["line"] for line in (await get(self._api, "/lines"))["items"]]
        ok(await self._api.post(f"/v1/chats/c/lines/{self._dice.choice(lines)}/switch"), 200)

    async def erase(self) -> None:
        """The chat gone and created again at the same moment, with the same messages."""
        ok(await self._api.delete("/v1/chats/c"), 204)
        self._said = 0
        await self.begin()

    async def raise_scopes(self) -> None:
        """Something known to all chats of the user."""
        async with self._database.unit_of_work() as db_session:
            raise_scope(db_session, Owner.of_user(self._tenant, "mira"))

    async def _with_message(self, act: Callable[[str], Awaitable[object]]) -> None:
        items = (await get(self._api, "/messages", limit=500))["items"]
        if items:
            await act(self._dice.choice(items)["id"])


@pytest.mark.parametrize("seed", range(COURSES))
async def test_an_answer_that_differs_has_another_tag(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
    seed: int,
) -> None:
    dice = random.Random(seed)
    chat, reader = Chat(api, dispatcher, clock, model, database, tenant, dice), Reader(api)
    await chat.begin()
    await reader.read()
    acts = chat.acts()
    for act in [*dice.sample(acts, len(acts)), *dice.choices(acts, k=STEPS - len(acts))]:
        await act()
        await reader.read()


@pytest.fixture
async def chat(api: httpx.AsyncClient) -> Json:
    """A chat of a user with some messages."""
    await put(api, user_id="mira", characters=[{"name": "Kai"}])
    return await append(api, talk(1, 12))


async def read_tag(api: httpx.AsyncClient, path: str = "/context", **options: Any) -> str | None:
    """The tag of an answer; one without must not be stored."""
    answer = await api.get(f"/v1/chats/c{path}", params=options)
    assert answer.status_code == 200, answer.text
    tag: str | None = answer.headers.get("ETag")
    assert answer.headers["Cache-Control"] == ("no-store" if tag is None else REVALIDATE)
    return tag


async def test_options_that_differ_have_other_tags(api: httpx.AsyncClient, chat: Json) -> None:
    line = (await get(api, ""))["line"]
    options: list[Json] = [{}, {"format": "openai"}, {"format": "text"}, {"max_tokens": 900}, {"character": "Kai"}]
    tags = [await read_tag(api, **given) for given in options]
    assert len(set(tags)) == len(tags)
    assert await read_tag(api, line=line) == tags[0], "it is the current line"
    assert await read_tag(api, format="segments", recall="off") == await read_tag(api, recall="off")
    posted = await api.post("/v1/chats/c/context", json={"format": "openai"})
    assert posted.headers["ETag"] != tags[0]


@pytest.mark.parametrize(
    "options",
    [{"draft": "Do you still have the key?"}, {"now": "2026-04-01T12:00:00Z"}, {"recall": "auto"}],
    ids=["draft", "now", "recall"],
)
async def test_a_context_with_a_draft_time_or_recall_has_no_tag(
    api: httpx.AsyncClient, chat: Json, options: Json
) -> None:
    assert await read_tag(api, **options) is None
    assert (await api.get("/v1/chats/c/context", params=options, headers={"If-None-Match": "*"})).status_code == 200


@pytest.mark.parametrize("settings", [{"time": True}, {"recall": {"mode": "auto"}}], ids=["time", "recall"])
async def test_a_context_that_depends_on_time_or_recall_has_no_etag(
    api: httpx.AsyncClient, chat: Json, settings: Json
) -> None:
    await put(api, status=200, settings=settings)
    assert await read_tag(api) is None
    assert await read_tag(api, "") is not None


async def test_a_context_that_is_known_takes_one_statement(app: FastAPI, api: httpx.AsyncClient, chat: Json) -> None:
    tag = await read_tag(api)
    async with watched(app.state.database) as statements:
        answer = await api.get("/v1/chats/c/context", headers={"If-None-Match": tag or ""})
    assert (answer.status_code, len(statements.all)) == (304, 1)


async def test_several_headers_are_one_list(api: httpx.AsyncClient, chat: Json) -> None:
    for path in ("", "/context", "/memos"):
        headers = [("If-None-Match", '"other"'), ("If-None-Match", await read_tag(api, path) or "")]
        assert (await api.get(f"/v1/chats/c{path}", headers=headers)).status_code == 304


@pytest.mark.parametrize("path", ["", "/context", "/memos"])
async def test_an_asterisk_matches_every_answer_except_errors(api: httpx.AsyncClient, chat: Json, path: str) -> None:
    star = {"If-None-Match": "*"}
    assert (await api.get(f"/v1/chats/c{path}", headers=star)).status_code == 304
    assert (await api.get(f"/v1/chats/unknown{path}", headers=star)).status_code == 404
    wrong = await api.get("/v1/chats/c/context", params={"character": "Nobody"}, headers=star)
    assert (wrong.status_code, wrong.headers["Cache-Control"]) == (422, "no-store")
    small = await api.get("/v1/chats/c/context", params={"max_tokens": 1}, headers=star)
    assert small.status_code == 422


async def test_a_token_of_another_user_gets_a_404(app: FastAPI, api: httpx.AsyncClient, chat: Json) -> None:
    tags = {path: await read_tag(api, path) or "" for path in ("", "/context", "/memos")}
    body = {"scopes": ["read"], "ttl_s": 60, "user_id": "ren"}
    async with client_of(app, ok(await api.post("/v1/tokens", json=body), 201)["token"]) as stranger:
        for path, tag in tags.items():
            assert (await stranger.get(f"/v1/chats/c{path}", headers={"If-None-Match": tag})).status_code == 404


async def test_answers_without_a_tag_must_not_be_stored(api: httpx.AsyncClient, chat: Json) -> None:
    answers = [
        *[
            await api.get(f"/v1/chats/c{path}")
            for path in ("/messages", "/messages/m1", "/lines", "/state", "/nothing")
        ],
        *[await api.get(path) for path in ("/healthz", "/readyz", "/v1/chats", "/v1/presets", "/openapi.json", "/x")],
        await api.post("/v1/chats/c/messages", json={"messages": [said(13)], "context": {}}),
        await api.put("/v1/chats/c", json={}),
        await api.put("/v1/chats/c", content=b"{"),
        await api.delete("/v1/chats/c"),
    ]
    assert {answer.headers["Cache-Control"] for answer in answers} == {"no-store"}
    assert {answer.headers["X-Content-Type-Options"] for answer in answers} == {"nosniff"}
    assert not any("ETag" in answer.headers for answer in answers)


async def test_an_unexpected_error_must_not_be_stored(app: FastAPI, api: httpx.AsyncClient, chat: Json) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise ZeroDivisionError

    answer = await api.get("/broken")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (500, "no-store")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_page_of_another_origin_can_read_the_tag(fresh_database_url: str, clock: SteppedClock) -> None:
    origin = "https://chat.example"
    app = create_app(Settings(database_url=fresh_database_url, cors_origins=[origin], _env_file=None), clock=clock)
    headers = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    async with client_of(app, None) as api:
        asked = headers | {"Access-Control-Request-Headers": "if-none-match"}
        assert (await api.options("/v1/chats/c", headers=asked)).status_code == 200
        await put(api)
        answer = await api.get("/v1/chats/c", headers={"Origin": origin})
        assert answer.headers["Access-Control-Expose-Headers"] == "ETag, X-Request-Id, Retry-After"
    await app.state.database.close()


async def test_the_tag_and_the_304_are_documented(api: httpx.AsyncClient) -> None:
    paths = (await api.get("/openapi.json")).json()["paths"]
    chat = "/v1/chats/{chat_id}"
    for path, method in (
        (chat, "get"),
        (f"{chat}/context", "get"),
        (f"{chat}/context", "post"),
        (f"{chat}/memos", "get"),
        (f"{chat}/memos/{{memo_id}}", "get"),
    ):
        operation = paths[path][method]
        assert "ETag" in operation["responses"]["200"]["headers"]
        assert "ETag" in operation["responses"]["304"]["headers"]
        assert "content" not in operation["responses"]["304"]
        assert "if-none-match" in [one["name"].lower() for one in operation["parameters"]]


async def test_a_restore_gives_the_same_context_with_another_etag(api: httpx.AsyncClient, chat: Json) -> None:
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}), 201)
    before, tag = await context(api), await read_tag(api)
    ok(await api.post("/v1/chats/c/checkpoints/dusk/restore"), 201)
    after = await context(api)
    assert after | {"line": before["line"]} == before
    assert await read_tag(api) != tag
