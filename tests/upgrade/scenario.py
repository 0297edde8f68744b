"""Fills the database that is dumped: the golden story in every preset, and changes that people make.

All of it goes through the HTTP API and the workers: first the work that succeeds, then the work that fails, then the
work that stays due. An answer of the model schedules transient failures again, so they come after all answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import httpx

from app.memos.prompts import MEMO
from tests.golden.author import Author
from tests.golden.script import CAST, Story
from tests.golden.stage import Stage
from tests.scripted_model import Reply, Request, quoting_memo, refuses
from tests.talk import Json, append, ok, put
from tests.upgrade.service import Service

BEGINS_AT = datetime(2026, 10, 4, 16, 0, tzinfo=UTC)
LATER = datetime(2026, 10, 20, 9, 0, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)

PLAYED = {"memo": 32, "diary": 40, "scenes": 72, "agent": 31, "decay": 25, "companion": 36}
"""The presets, each with the message at which its chat ends."""

SHORT: Json = {
    "preset": "memo",
    "history": {"keep_messages": 4, "grow_messages": 4},
    "memos": {"every_messages": 4},
    "diary": {"enabled": True},
}
SUMMARISED: Json = {
    "preset": "memo",
    "summary": {"enabled": True, "threshold_messages": 8, "keep_messages": 4},
    "scenes": {"enabled": True, "min_messages": 4, "auto_hide": 1},
}


class Model:
    """Answers as the author of the golden story does, else with a quotation; `refusal` replaces every answer."""

    def __init__(self, story: Story) -> None:
        self.refusal: Reply | None = None
        self._author = Author(story)

    def __call__(self, request: Request) -> str | Reply:
        if self.refusal:
            return self.refusal
        try:
            answer = self._author(request)
        except KeyError:
            is_memo = request["messages"][0]["content"] == MEMO.system
            answer = quoting_memo(request) if is_memo else ""
        return answer or "Jonas came to the workshop again, and I was glad of it."


@dataclass(frozen=True, slots=True)
class Scenario:
    """Fills the chats of both tenants."""

    service: Service
    model: Model
    story: Story

    @property
    def acme(self) -> httpx.AsyncClient:
        """The tenant whose chats have a model."""
        return self.service.apis["acme"]

    @property
    def globex(self) -> httpx.AsyncClient:
        """The tenant whose chats are summarised without a model."""
        return self.service.apis["globex"]

    async def run(self) -> None:
        """Fill them."""
        stage = Stage(self.acme, self.service.clock, self.service.writer, Author(self.story))
        for preset, last in PLAYED.items():
            await stage.play(self._until(last), preset, ())
        self.service.clock.step((LATER - self.service.clock()).total_seconds())
        await self._change_presets()
        await self._write_diary()
        await self._change_scenes()
        await self._make_lines()
        await self._quote()
        await self._refuse()
        await self._leave_due()

    def _until(self, last: int) -> Story:
        return replace(self.story, beats=[beat for beat in self.story.beats if beat.last <= last])

    def _said(self, first: int, last: int) -> list[Json]:
        """Return the messages first…last (inclusive) as the story has them."""
        messages = [message for beat in self.story.beats for message in beat.messages]
        return messages[first - 1 : last]

    async def _settle(self) -> None:
        await self.service.settle(self.service.writer)

    async def _change_presets(self) -> None:
        """Change settings, memos, messages and a summary, and cut off the end of a chat."""
        characters = [*CAST["characters"], {"name": "Pfennig", "persona": "A grey cat.", "disabled": True}]
        about = {"user_id": "jonas", "characters": characters, "metadata": {"theme": "dusk", "shelf": [1, 2]}}
        await put(self.acme, "companion", status=200, **about, settings={"time": True})
        memos = await self._items("memo", "memos")
        await self._call("PATCH", f"memo/memos/{memos[0]['id']}", {"pinned": True, "text": "Jonas came in wet."})
        await self._call("DELETE", f"memo/memos/{memos[1]['id']}")
        await self._call("POST", "memo/memos", {"text": "Soup is the answer to most questions.", "after_seq": 20})
        await self._call("PATCH", "memo/messages/m5", {"pinned": True, "metadata": {"mood": "dry"}})
        await self._call("PATCH", "memo/messages/m6", {"excluded": True})
        await self._call("PUT", "diary/summary", {"text": "Jonas brought Ilka a notebook that had got wet."})
        hidden = {"ranges": [{"first_seq": 24, "last_seq": 25, "hidden": True}]}
        await self._call("POST", "agent/messages/visibility", hidden)
        await self._call("DELETE", "agent/messages?from_seq=28")
        await self._settle()

    async def _write_diary(self) -> None:
        """Have diary entries folded, and have the service write some."""
        await put(self.acme, "diary", status=200, settings={"diary": {"lines": 4, "auto_write_turns": 2}})
        for text in ("The cat is called Pfennig.", "Green cloth, then.", "No word of it."):
            await self._call("POST", "diary/diary", {"content": text})
        await self._settle()
        for first, last in ((41, 46), (47, 52)):
            await append(self.acme, self._said(first, last), "diary")
            await self._settle()
        entries = await self._items("diary", "diary")
        await self._call("PATCH", f"diary/diary/{entries[-1]['id']}", {"content": "I said it once."})
        await self._call("DELETE", f"diary/diary/{entries[0]['id']}")
        await self._settle()

    async def _change_scenes(self) -> None:
        """Set and lift breaks, rewrite a scene and the running recap, and cut off the end."""
        await self._call("PUT", "scenes/scenes/breaks/64")
        await self._settle()
        scenes = await self._items("scenes", "scenes")
        rewritten = {"title": "Three lamps", "recap": "# Outcomes\n- Ilka told Jonas of the eye."}
        parted = next(scene for scene in scenes if scene["last_seq"] == 64)
        await self._call("PATCH", f"scenes/scenes/{parted['id']}", rewritten)
        await self._settle()
        await self._call("DELETE", "scenes/messages?from_seq=63")
        await self._settle()
        for method in ("PUT", "DELETE"):
            await self._call(method, "scenes/scenes/breaks/44")
            await self._settle()
        scene = (await self._items("scenes", "scenes"))[1]
        await self._call("PATCH", f"scenes/scenes/{scene['id']}", {"title": "Soup"})
        await self._call("PATCH", "scenes/messages/m3", {"hidden": False})
        recap = await self._call("GET", "scenes/recap")
        await self._call("PUT", "scenes/recap", {"text": recap["text"] + "\n- pen: green"})
        await self._call("DELETE", "scenes/recap/versions/1")
        await self._settle()

    async def _make_lines(self) -> None:
        """Make a chat with many lines, and a fork of it."""
        about = CAST | {"user_id": "jonas", "metadata": {"shelf": "lines"}, "settings": SHORT}
        await put(self.acme, "lines", **about)
        await self._append_made("lines", self._said(1, 9))
        await self._call("POST", "lines/checkpoints", {"name": "first evening"})
        extra: list[Json] = [
            {"id": "blank", "role": "user", "content": " \n", "sent_at": "2026-10-06T08:00:00Z"},
            {"id": "note", "role": "system", "content": "It is night.", "importance": 0.5, "metadata": {"n": 1}},
        ]
        await self._append_made("lines", [*self._said(10, 13), *extra])
        left = (await self._call("GET", "lines"))["line"]
        await self._call("PATCH", "lines/messages/m3", {"content": "Then the door lied. Come in."})
        await self._call("POST", "lines/checkpoints", {"name": "with work"})
        await self._call("POST", "lines/checkpoints/first evening/restore")
        await self._append_made("lines", self._said(19, 24))
        await self._call("POST", "lines/tools/save_memory", {"content": "He hums."})
        await self._call("POST", "lines/fork", {"chat_id": "fork", "at_seq": 11})
        await self._settle()
        inserted = {"id": "new", "role": "user", "name": "Jonas", "content": "Before I forget: what do I owe you?"}
        messages = [*self._said(1, 6), inserted, *self._said(7, 9), *self._said(19, 24)]
        line = (await self._call("PUT", "lines/messages", {"messages": messages}))["line"]
        await self._settle()
        await self._call("POST", f"lines/lines/{left}/switch")
        await self._call("DELETE", "lines/messages/m12")
        await self._call("POST", f"lines/lines/{line}/switch")
        await self._append_made("lines", self._said(73, 76))

    async def _quote(self) -> None:
        """Fill the chat that has no model: scenes end at pauses, and a forced cut ends one."""
        about = CAST | {"user_id": "mira", "time_zone": "Asia/Tokyo", "language": "de", "settings": SUMMARISED}
        await put(self.globex, "memo", **about)
        for beat in self._until(26).beats:
            await append(self.globex, beat.messages, "memo")
            await self.service.settle(self.service.quoter)
        short = {"history": {"keep_messages": 4, "grow_messages": 4, "max_messages": 16}}
        await put(self.globex, "memo", status=200, settings=short)
        await append(self.globex, self._said(27, 42), "memo")
        await self.service.settle(self.service.quoter)

    async def _refuse(self) -> None:
        """Let the model fail for a while, refuse some work for good, then fail until the end."""
        self.model.refusal = refuses(503)
        await append(self.acme, self._said(37, 41), "companion")
        self.service.clock.step(AN_HOUR.total_seconds())
        await self.service.writer.drain()
        self.model.refusal = None
        await self.service.settle(self.service.writer, AN_HOUR)
        self.model.refusal = refuses(400)
        await append(self.acme, self._said(42, 49), "companion")
        await self.service.settle(self.service.writer, AN_HOUR)
        self.model.refusal = refuses(503)
        await append(self.acme, self._said(33, 48), "memo")
        await self.service.settle(self.service.writer, AN_HOUR)
        await append(self.acme, self._said(28, 29), "lines")
        await self.service.settle(self.service.writer, AN_HOUR)
        await append(self.acme, self._said(30, 33), "lines")
        self.service.clock.step(AN_HOUR.total_seconds())
        await self.service.writer.drain()
        await self._call("POST", "lines/checkpoints", {"name": "while the model is away"})

    async def _leave_due(self) -> None:
        """Make changes whose work stays due: no worker runs after them."""
        memos = await self._items("memo", "memos")
        await self._call("POST", f"memo/memos/{memos[0]['id']}/regenerate", {"replace_edited": True})
        await self._call("POST", f"memo/memos/{memos[-3]['id']}/regenerate", {"instruction": "Name the cat."})
        edited = "Ninety is fine. My patience is not."
        for chat in ("memo", "diary", "scenes", "companion", "lines", "fork"):
            await self._call("PATCH", f"{chat}/messages/m8", {"content": edited})
        for chat, message in (("scenes", "m60"), ("diary", "m30"), ("diary", "m34"), ("diary", "m48")):
            await self._call("PATCH", f"{chat}/messages/{message}", {"content": "Say that again."})
        await self._call("POST", "scenes/scenes/detect")
        await append(self.acme, self._said(53, 60), "diary")
        await append(self.acme, self._said(26, 29), "decay")
        await append(self.globex, self._said(43, 44), "memo")

    async def _append_made(self, chat_id: str, messages: Sequence[Json]) -> None:
        await append(self.acme, messages, chat_id)
        await self._settle()

    async def _items(self, chat_id: str, name: str) -> list[Json]:
        items: list[Json] = (await self._call("GET", f"{chat_id}/{name}?limit=500"))["items"]
        return items

    async def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        """Send a request about a chat of the first tenant."""
        answer = await self.acme.request(method, f"/v1/chats/{path}", json=body)
        return ok(answer, answer.status_code if answer.is_success else 200)
