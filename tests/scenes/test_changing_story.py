"""A story that changes in any order: what is true of its scenes whenever everything that is due has been made.

`make check` has a few stories, `make check-long` more of them.
"""

import os
import random

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import settle_rounds
from tests.book import due_rows
from tests.scenes.story import ask, lift_break, ranges, recap, scenes, set_break, shown, story_model
from tests.scripted_model import ScriptedModel
from tests.talk import Json, append, cut_off, edit, get, hide, ok, put, said, soft_delete

KEEP = 2
STORIES = 16 if "TESTS_EXAMPLES" in os.environ else 4


class Story:
    """The chat `c`, appended to, changed and read over HTTP."""

    def __init__(self, api: httpx.AsyncClient, chance: random.Random) -> None:
        self.api = api
        self.chance = chance
        self.said = 0
        self.kept_in_sight: set[str] = set()

    async def messages(self) -> list[Json]:
        items: list[Json] = (await get(self.api, "/messages", limit=500))["items"]
        return items

    async def append_some(self) -> None:
        count = self.chance.randint(1, 9)
        await append(self.api, [self.next() for _ in range(count)])

    def next(self) -> Json:
        self.said += 1
        return said(self.said)

    async def one(self) -> Json | None:
        living = await self.messages()
        return self.chance.choice(living) if living else None

    async def change(self) -> None:
        """Do one thing."""
        verb = self.chance.choice(("tell", "tell", "break", "break", "edit", "bury", "cut", "hide", "write", "insert"))
        one = await self.one()
        if verb == "tell" or one is None:
            await self.append_some()
        elif verb == "break":
            is_there = one["seq"] in [last for _, last in await ranges(self.api)]
            await (lift_break if is_there else set_break)(self.api, one["seq"])
        elif verb == "edit":
            self.said += 1
            await edit(self.api, one["id"], content=f"Instead of that, lamp number {self.said}.")
        elif verb == "bury":
            await soft_delete(self.api, one["id"])
        elif verb == "cut" and self.chance.random() < 0.5:
            await cut_off(self.api, one["seq"])
        elif verb == "hide":
            await self.see_otherwise(one["seq"], one["seq"] + 2, hidden=self.chance.random() < 0.5)
        elif verb == "write":
            closed = [scene for scene in await scenes(self.api) if not scene["open"]]
            if closed:
                self.said += 1
                path = f"/scenes/{self.chance.choice(closed)['id']}"
                await ask(self.api, "PATCH", path, 200, {"recap": f"A person says #{self.said}."})
        elif verb == "insert" and self.chance.random() < 0.4:
            kept = [{name: m[name] for name in ("id", "role", "content")} for m in await self.messages()]
            kept.insert(self.chance.randint(0, len(kept)), self.next())
            ok(await self.api.put("/v1/chats/c/messages", json={"messages": kept}), 200)

    async def see_otherwise(self, first_seq: int, last_seq: int, *, hidden: bool) -> None:
        """Hide a range or show it, as a person does."""
        touched = [message for message in await self.messages() if first_seq <= message["seq"] <= last_seq]
        await hide(self.api, (first_seq, last_seq), hidden=hidden)
        if hidden:
            self.kept_in_sight -= {message["id"] for message in touched}
        else:
            self.kept_in_sight |= {message["id"] for message in touched if message["hidden_by"]}

    async def check_scenes(self) -> None:
        """Scenes follow each other without a gap, and end on messages that are there."""
        seqs = {message["seq"] for message in await self.messages()}
        next_seq = 1
        for number, scene in enumerate(await scenes(self.api), start=1):
            assert (scene["number"], scene["first_seq"]) == (number, next_seq)
            if not scene["open"]:
                assert scene["last_seq"] in seqs
                next_seq = scene["last_seq"] + 1
        assert all(seq < next_seq for seq in seqs) == (not any(scene["open"] for scene in await scenes(self.api)))

    async def check_settled(self) -> None:
        """Check that each recap is valid, the running one covers all scenes, and old scenes are hidden."""
        await self.check_scenes()
        found = await scenes(self.api)
        told = []
        for scene in found:
            if scene["open"]:
                continue
            assert scene["status"] in ("ready", "empty")
            assert scene["origin"] == "person" or not scene["stale"]
            told += [int(word.strip("#.,")) for word in scene["recap"].split() if word.startswith("#") and word != "#"]
        assert await recap(self.api) == await shown(self.api) == [n for n in told if n]
        closed = [scene for scene in found if not scene["open"]]
        old = closed[: max(len(found) - KEEP, 0)]
        expected = {
            message["id"]
            for message in await self.messages()
            if any(scene["first_seq"] <= message["seq"] <= scene["last_seq"] for scene in old)
            and message["hidden_by"] != "user"
            and message["id"] not in self.kept_in_sight
        }
        assert {message["id"] for message in await self.messages() if message["hidden_by"] == "scenes"} == expected


@pytest.mark.parametrize("seed", range(STORIES))
async def test_scenes_and_recap_are_valid_after_any_changes(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    seed: int,
) -> None:
    model.otherwise = story_model(lambda possible: possible[0] if possible[0] % 3 == 0 else None)
    await put(
        api,
        settings={
            "preset": "scenes",
            "history": {"keep_messages": 1, "grow_messages": 15},
            "scenes": {"min_messages": 5, "auto_hide": KEEP},
        },
    )
    story = Story(api, random.Random(seed))
    await story.append_some()
    for turn in range(45):
        await story.change()
        await story.check_scenes()
        if turn % 3 == 2:
            clock.step(1)
            await dispatcher.drain()
        if turn % 9 == 8:
            await settle_rounds(dispatcher, clock, rounds=20)
            line = (await get(api, ""))["line"]
            assert [row for row in await due_rows(database, tenant) if str(row["line_id"]) == line] == []
            await story.check_settled()
