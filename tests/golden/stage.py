"""Plays the golden story in a chat: appends what is said when it is said, and lets the worker make what is due."""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, timedelta
from uuid import uuid4

import asyncpg
import httpx

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelClient
from app.kit.settings import Settings
from app.local.running import Urls
from app.main import create_app
from app.registry import LAYERS
from tests.conftest import SETTLE_S, client_of
from tests.golden.author import Author
from tests.golden.script import CAST, Beat, Deed, Json, Story
from tests.golden.sheet import write_sheet
from tests.scripted_model import ScriptedModel
from tests.slowness import SLOWNESS
from tests.talk import ok

MOST_ROUNDS = 20
"""So many rounds of work at most follow from one beat: what is made makes more due."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A service with its own database, on the story's time.

    Attributes:
        api: A client with a key.
        clock: Shows the story's time.
        dispatcher: The worker.
        author: The model.

    """

    api: httpx.AsyncClient
    clock: SteppedClock
    dispatcher: Dispatcher
    author: Author

    async def play(self, story: Story, preset: str, look_after: Collection[int]) -> dict[int, str]:
        """Have the story happen in a new chat that is called as its preset; the sheets after some of the messages."""
        chat = f"/v1/chats/{preset}"
        made = ok(await self.api.put(chat, json=CAST | {"settings": {"preset": preset}}), 201)
        keeps_diary = made["settings"]["diary"]["enabled"]
        sheets = {}
        for beat in story.beats:
            await self._append(chat, beat)
            for deed in beat.deeds:
                await self._do(chat, deed)
            if keeps_diary:
                await self._write_diary(chat, story, beat)
            await self.settle()
            if beat.last in look_after:
                sheets[beat.last] = write_sheet(
                    await self.context(preset), await self.inclusion(preset), self.author.asked
                )
        return sheets

    async def settle(self) -> None:
        """Let time pass until nothing more is made."""
        for _ in range(MOST_ROUNDS):
            self.clock.step(SETTLE_S)
            if not await self.dispatcher.drain():
                return
        raise AssertionError("the work does not end")

    async def context(self, chat_id: str) -> Json:
        """The context as readable text, with everything that is said of it."""
        return ok(await self.api.get(f"/v1/chats/{chat_id}/context", params={"format": "text"}), 200)

    async def inclusion(self, chat_id: str) -> list[Json]:
        """How each message is in the context."""
        items: list[Json] = ok(await self.api.get(f"/v1/chats/{chat_id}/inclusion", params={"limit": 500}), 200)[
            "items"
        ]
        return items

    async def fork(self, chat_id: str) -> str:
        """A chat that is equal to another one."""
        twin = f"{chat_id}-{uuid4().hex[:8]}"
        ok(await self.api.post(f"/v1/chats/{chat_id}/fork", json={"chat_id": twin}), 201)
        return twin

    async def set(self, chat_id: str, settings: Json) -> None:
        """Change settings of a chat, and let what follows be made."""
        ok(await self.api.put(f"/v1/chats/{chat_id}", json={"settings": settings}), 200)
        await self.settle()

    async def _append(self, chat: str, beat: Beat) -> None:
        self.clock.step((beat.at - self.clock()).total_seconds())
        ok(await self.api.post(f"{chat}/messages", json={"messages": beat.messages}), 201)

    async def _do(self, chat: str, deed: Deed) -> None:
        """Do what a person does to messages that are there."""
        self.clock.step(1)
        message = f"{chat}/messages/m{deed.numbers[0]}" if deed.numbers else ""
        match deed.verb:
            case "edit":
                ok(await self.api.patch(message, json={"content": deed.text}), 200)
            case "swipe":
                ok(await self.api.post(f"{message}/swipes", json={"content": deed.text}), 201)
            case "select":
                ok(await self.api.put(f"{message}/swipes/selected", json={"index": int(deed.text)}), 200)
            case "pin":
                ok(await self.api.patch(message, json={"pinned": True}), 200)
            case "exclude":
                ok(await self.api.patch(message, json={"excluded": True}), 200)
            case "hide":
                first, last = deed.numbers
                ranges = [{"first_seq": first, "last_seq": last, "hidden": True}]
                ok(await self.api.post(f"{chat}/messages/visibility", json={"ranges": ranges}), 200)
            case "delete":
                ok(await self.api.delete(message), 204)
            case "memo":
                ok(await self.api.post(f"{chat}/memos", json={"text": deed.text}), 201)
            case verb:
                raise ValueError(f"nobody knows how to {verb}")

    async def _write_diary(self, chat: str, story: Story, beat: Beat) -> None:
        """Have the character write into its diary, with its tool, what it does after the messages of a beat."""
        for entry in story.answers["diary"]:
            if beat.first <= entry["after"] <= beat.last:
                ok(await self.api.post(f"{chat}/tools/save_memory", json={"content": entry["entry"]}), 200)


@asynccontextmanager
async def open_stage(servers: Urls, template: str, story: Story) -> AsyncIterator[Stage]:
    """A stage with a database of its own, a day before the story begins."""
    url = await _make_database(servers, template)
    clock = SteppedClock(story.beats[0].at.astimezone(UTC) - timedelta(days=1))
    settings = Settings(database_url=url, redis_url=servers.redis_url, settle_s=SETTLE_S, _env_file=None)
    app = create_app(settings, clock=clock)
    database, author = app.state.database, Author(story)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.close)
        opened.push_async_callback(app.state.recall_memory.close)
        async with database.unit_of_work() as db_session:
            key = (await create_key(db_session, "golden", ["read", "write"], clock())).text
        api = await opened.enter_async_context(client_of(app, key))
        scripted = await opened.enter_async_context(ScriptedModel())
        scripted.otherwise = author
        model = ModelClient(scripted.base_url, "scripted", timeout_s=5 * SLOWNESS, concurrency=1, max_attempts=1)
        opened.push_async_callback(model.aclose)
        yield Stage(api, clock, Dispatcher(JobContext(database, clock, model), LAYERS, slots=1, poll_s=30), author)


async def _make_database(servers: Urls, template: str) -> str:
    """Yield the URL of a migrated database of its own, in which only the story's work is due."""
    name = f"golden_{uuid4().hex}"
    connection = await asyncpg.connect(servers.database_url.replace("+asyncpg", ""))
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    finally:
        await connection.close()
    head, query = servers.database_url.split("?", 1)
    return f"{head.rpartition('/')[0]}/{name}?{query}"
