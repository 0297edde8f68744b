"""Random sessions with renames end like the same sessions in which the character always had its last name.

`make check` has a few sessions, `make check-long` more of them.
"""

import os
import random
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle_rounds
from tests.chats.renames import LAYERS
from tests.diary.diaries import MIRA
from tests.oracle.answers import echo
from tests.scripted_model import Request, ScriptedModel
from tests.talk import Json, ok

LAST = "Cay"
NAMES = ("Kai", "Kay", "Jonathan", LAST)
STEPS = 24
SESSIONS = 16 if "TESTS_EXAMPLES" in os.environ else 4


def answer(request: Request) -> str:
    """Repeat the words of the prompt. No scene is found, because an echo would choose it by the speakers' names."""
    looks = "Possible answers:" in str(request["messages"][-1]["content"])
    return '{"break_at": null, "reason": "They stay."}' if looks else echo(request)


class Session:
    """A chat that is renamed at random, and one with the same steps in which nothing is.

    Attributes:
        chats: The paths of the two chats.

    """

    def __init__(self, api: httpx.AsyncClient, seed: int) -> None:
        self.chats = ("/v1/chats/renamed", "/v1/chats/constant")
        self._api = api
        self._dice = random.Random(seed)
        self._words = 0
        self._checkpoints = 0

    async def send(self, method: str, path: str, body: Json | None = None, **query: Any) -> None:
        """Send a request to both chats, which answer with the same status; `name` in the body stands for any name."""
        statuses = set()
        for chat in self.chats:
            names = await self._list_names(chat)
            sent = _fill(body, self._dice.choice(names))
            asked = {key: self._dice.choice(names) if value == "*" else value for key, value in query.items()}
            statuses.add((await self._api.request(method, f"{chat}{path}", json=sent, params=asked)).status_code)
        assert len(statuses) == 1
        assert max(statuses) < 500

    async def begin(self) -> None:
        for chat, name in zip(self.chats, ("Kai", LAST), strict=True):
            ok(await self._api.put(chat, json={"characters": [{"name": name}, MIRA], "settings": LAYERS}), 201)
        await self.post()
        await self.post()

    async def step(self) -> None:
        steps = [self.post, self.post, self.rename, self.rename, self.edit, self.edit_back, self.remove, self.call]
        steps += [self.swipe, self.reimport, self.write, self.break_scene, self.disable, self.restore, self.cut_off]
        await self._dice.choice(steps)()

    async def rename(self) -> None:
        """Rename the character in one of the chats; a name that another character has is refused."""
        await self.rename_to(self._dice.choice(NAMES))

    async def rename_to(self, name: str) -> None:
        path = f"{self.chats[0]}/characters/{self._dice.choice(await self._list_names(self.chats[0]))}/rename"
        before = await self.show(self.chats[0])
        ok(await self._api.post(path, json={"name": name}), 200)
        assert await self.show(self.chats[0]) == before

    async def post(self) -> None:
        kinds = [("user", None), ("assistant", "*"), ("assistant", "Mira"), ("narrator", "*")]
        messages = []
        for _ in range(self._dice.choice([1, 2, 4])):
            role, name = self._dice.choice(kinds)
            messages.append({"id": f"m{self._words + 1}", "role": role, "name": name, "content": self._word()})
        await self.send("POST", "/messages", {"messages": messages})

    async def edit(self) -> None:
        await self.send("PATCH", f"/messages/{self._message()}", {"content": self._word()})

    async def edit_back(self) -> None:
        message_id = self._message()
        await self.send("PATCH", f"/messages/{message_id}", {"content": f"w{message_id[1:]}w"})

    async def remove(self) -> None:
        await self.send("DELETE", f"/messages/{self._message()}")

    async def swipe(self) -> None:
        message_id = self._message()
        await self.send("POST", f"/messages/{message_id}/swipes", {"content": self._word()})
        await self.send("PUT", f"/messages/{message_id}/swipes/selected", {"index": self._dice.choice([0, 1])})

    async def call(self) -> None:
        await self.send("POST", "/tools/save_memory", {"content": f"I know p{self._word()}p."}, character="*")

    async def write(self) -> None:
        await self.send("POST", "/diary", {"content": f"I wrote p{self._word()}p.", "character": "*"})

    async def break_scene(self) -> None:
        await self.send("PUT", f"/scenes/breaks/{self._dice.randint(1, self._words)}")

    async def disable(self) -> None:
        disabled = self._dice.random() < 0.5
        await self.send("PUT", "", {"characters": [{"name": "*", "disabled": disabled}, MIRA]})

    async def cut_off(self) -> None:
        await self.send("DELETE", "/messages", from_seq=self._dice.randint(self._words // 2, self._words))

    async def restore(self) -> None:
        """Go back to a checkpoint, or make one."""
        if self._checkpoints and self._dice.random() < 0.5:
            await self.send("POST", f"/checkpoints/n{self._dice.randint(1, self._checkpoints)}/restore")
        else:
            self._checkpoints += 1
            await self.send("POST", "/checkpoints", {"name": f"n{self._checkpoints}"})

    async def reimport(self) -> None:
        """Send the list again without ids, with a changed text or an inserted message."""
        items = ok(await self._api.get(f"{self.chats[1]}/messages", params={"limit": 500}), 200)["items"]
        messages = [{"role": one["role"], "name": one["name"], "content": one["content"]} for one in items]
        for message in messages:
            message["name"] = "*" if message["name"] == LAST else message["name"]
        if messages and self._dice.random() < 0.7:
            self._dice.choice(messages)["content"] = self._word()
        if self._dice.random() < 0.2:
            new = {"role": "assistant", "name": "*", "content": self._word()}
            messages.insert(self._dice.randint(0, len(messages)), new)
        await self.send("PUT", "/messages", {"messages": messages})

    async def show(self, chat: str, *, context: bool = False) -> Any:
        """Return what a chat remembers, without ids, with the last name for the character."""
        name = (await self._list_names(chat))[0]
        shown: list[Any] = [ok(await self._api.get(chat), 200)["work"]]
        for path in ("messages", "memos", "diary", "scenes", "summary/versions", "recap/versions", "tools/calls"):
            items = ok(await self._api.get(f"{chat}/{path}", params={"limit": 500}), 200)["items"]
            shown += [_plain(item, name) for item in items]
        if context:
            for wanted in ({"format": "text"}, {"character": name}, {"character": "Mira", "format": "openai"}):
                found = ok(await self._api.get(f"{chat}/context", params=wanted), 200)
                shown.append(_plain(found, name))
        return shown

    async def _list_names(self, chat: str) -> list[str]:
        """Return the current name of the character, then its former ones."""
        character = ok(await self._api.get(chat), 200)["characters"][0]
        return [character["name"], *character["aliases"]]

    def _message(self) -> str:
        return f"m{self._dice.randint(1, self._words)}"

    def _word(self) -> str:
        self._words += 1
        return f"w{self._words}w"


def _fill(value: Any, name: str) -> Any:
    """Return a body with a name of the character for each `*`."""
    if isinstance(value, dict):
        return {key: _fill(one, name) for key, one in value.items()}
    if isinstance(value, list):
        return [_fill(one, name) for one in value]
    return name if value == "*" else value


def _plain(value: Any, name: str) -> Any:
    """Return an answer without what differs between chats, with the last name for the character."""
    if isinstance(value, dict):
        hidden = {"id", "memo_id", "entry_id", "message_id", "line", "chat_id", "sources", "first_message_id", "by"}
        hidden |= {"last_message_id", "after", "created_at", "effect"}  # two chats that share a worker take turns
        return {key: _plain(one, name) for key, one in value.items() if key not in hidden}
    if isinstance(value, list):
        return [_plain(one, name) for one in value]
    return LAST if value == name else value


@pytest.mark.parametrize("seed", range(SESSIONS))
async def test_a_renamed_chat_ends_like_one_that_was_not(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, seed: int
) -> None:
    model.otherwise = answer
    session = Session(api, seed)
    await session.begin()
    for step in range(STEPS):
        await session.step()
        renamed, constant = [await session.show(chat) for chat in session.chats]
        assert renamed == constant
        if step % 4 == 3:
            await settle_rounds(dispatcher, clock)
    await session.rename_to(LAST)
    await settle_rounds(dispatcher, clock)
    renamed, constant = [await session.show(chat, context=True) for chat in session.chats]
    assert renamed == constant
