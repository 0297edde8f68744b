"""A frontend without message ids sends its whole chat again after each change, as SillyTavern's chats are stored."""

from dataclasses import dataclass, field
from random import Random

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.book import book
from tests.scripted_model import ScriptedModel, quoting_memo
from tests.talk import Json, add_swipe, append, context, edit, get, ok, put, said, select_swipe, talk, talk_with_memos


async def resend(api: httpx.AsyncClient, messages: list[Json], chat_id: str = "c") -> Json:
    """Send the whole chat without ids."""
    wanted = [{"role": one["role"], "name": one.get("name"), "content": one["content"]} for one in messages]
    return ok(await api.put(f"/v1/chats/{chat_id}/messages", json={"messages": wanted}), 200)


async def listed(api: httpx.AsyncClient) -> list[Json]:
    """All messages of the chat, with ids and swipes."""
    items: list[Json] = (await get(api, "/messages", limit=500))["items"]
    return items


async def test_an_edit_in_a_long_chat_is_one_call_of_the_model(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = quoting_memo
    await talk_with_memos(api, dispatcher, clock, 184)
    before, memos, line = await listed(api), await book(api), (await get(api, ""))["line"]
    calls = len(model.requests)
    edited = said(3, content="He said, and he said it at some length, that the lamp was red.")
    outcome = await resend(api, [*talk(1, 2), edited, *talk(4, 184)])
    assert outcome == {"added": 0, "changed": 1, "removed": 0, "line": line}
    clock.step(2)
    await dispatcher.drain()
    assert len(model.requests) == calls + 1
    after = await listed(api)
    expected = before[2] | {"content": edited["content"], "tokens": after[2]["tokens"], "swipes": [edited["content"]]}
    assert after[2] == expected | {"edited": True}
    assert [one["id"] for one in await book(api)] == [one["id"] for one in memos]
    assert "red" in (await book(api))[0]["text"]


async def test_an_edit_without_id_keeps_swipes_and_revisions(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 6))
    await edit(api, "m4", content="Once edited.", pinned=True)
    await add_swipe(api, "m4", "Another way to say it.")
    outcome = await resend(api, [*talk(1, 3), said(4, content="Yet another way."), *talk(5, 6)])
    assert (outcome["added"], outcome["changed"], outcome["removed"]) == (0, 1, 0)
    message = await get(api, "/messages/m4")
    assert (message["seq"], message["pinned"], message["selected_swipe"]) == (4, True, 1)
    assert message["swipes"] == ["Once edited.", "Yet another way."]
    revisions = (await get(api, "/messages/m4/revisions"))["items"]
    assert [(one["swipe"], one["content"]) for one in revisions] == [
        (1, "Another way to say it."),
        (0, said(4)["content"]),
    ]


@pytest.mark.parametrize("with_id", [True, False])
@pytest.mark.parametrize("moves", [True, False])
async def test_a_text_that_is_a_swipe_is_selected(api: httpx.AsyncClient, with_id: bool, moves: bool) -> None:
    await append(api, talk(1, 6))
    for text in ("Second.", "Third."):
        await add_swipe(api, "m4", text)
    before = await get(api, "/messages/m4")
    wanted = [*talk(1, 3), said(4, content=before["swipes"][0]), *talk(5, 6)]
    wanted.insert(1, said(99)) if moves else None
    if with_id:
        ok(await api.put("/v1/chats/c/messages", json={"messages": wanted}), 200)
    else:
        assert (await resend(api, wanted))["changed"] == 1
    after = await get(api, "/messages/m4")
    changed = {"content": before["swipes"][0], "selected_swipe": 0, "tokens": after["tokens"], "seq": 4 + moves}
    assert after == before | changed
    assert not after["edited"]
    assert (await get(api, "/messages/m4/revisions"))["items"] == []
    assert before["swipes"][0] in (await context(api, format="text"))["text"]
    assert (await select_swipe(api, "m4", 2))["content"] == "Third."


async def test_selecting_the_swipe_of_a_valid_memo_calls_no_model(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 16)
    calls = len(model.requests)
    await add_swipe(api, "m8", "Second.")
    await resend(api, talk(1, 16))
    clock.step(2)
    await dispatcher.drain()
    assert len(model.requests) == calls


async def test_a_new_user_message_and_reply_replace_a_reply(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    line = (await get(api, ""))["line"]
    outcome = await resend(api, [*talk(1, 3), said(5), said(6)])
    assert outcome == {"added": 2, "changed": 0, "removed": 1, "line": line}


async def test_a_renamed_speaker_keeps_every_message(api: httpx.AsyncClient) -> None:
    await append(api, [one | {"name": "Mira"} if n % 2 else one for n, one in enumerate(talk(1, 40), 1)])
    before = await listed(api)
    renamed = [one | {"name": "Mo"} if n % 2 else one for n, one in enumerate(talk(1, 40), 1)]
    outcome = await resend(api, [*renamed[:6], *renamed[8:]])
    assert (outcome["added"], outcome["changed"], outcome["removed"]) == (0, 19, 2)
    assert [one["id"] for one in await listed(api)] == [one["id"] for one in [*before[:6], *before[8:]]]


# --- Random stories, changed as people change chats in SillyTavern ---------------------------------

_WORDS = ("lamp", "pier", "letter", "key", "storm", "harbour", "gull", "rope")


@dataclass
class Line:
    """A line of SillyTavern's file, and what the service is expected to know of its message."""

    role: str
    texts: list[str]
    selected: int = 0
    id: str = ""
    revisions: list[tuple[int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.texts[self.selected]


class Story:
    """A chat and the changes that people make in it; some of its texts are short and equal, some are white space.

    What is appended or inserted later has a text of its own: with the text of a message that is deleted at the same
    time, it would be that message, moved. `repeats` is how many of the edits have a text that others have too.
    """

    def __init__(self, random: Random, length: int) -> None:
        self.random, self.repeats = random, 0.25
        self.lines = [Line(("assistant", "user")[n % 2], [self.new_text()]) for n in range(length)]

    def new_text(self) -> str:
        return self.random.choice(["ok", "Go on.", " "]) if self.random.random() < self.repeats else self.own_text()

    def own_text(self) -> str:
        return f"{' '.join(self.random.choices(_WORDS, k=6))} {self.random.randrange(10**9)}."

    def append(self) -> None:
        role = "user" if self.lines[-1].role == "assistant" else "assistant"
        self.lines.append(Line(role, [self.own_text()]))

    def edit(self, line: Line | None = None) -> None:
        """Change the text of a message, to another of its swipes or to a new text."""
        line = line or self.random.choice(self.lines)
        text = f"{line.text} No, {self.new_text()}" if self.random.random() < 0.5 else self.new_text()
        if text in line.texts:
            line.selected = line.texts.index(text)
        else:
            line.revisions.append((line.selected, line.text))
            line.texts[line.selected] = text

    def edit_last(self) -> None:
        self.edit(self.lines[-1])

    def select(self) -> None:
        """Select another swipe of a message that has one."""
        line = self.random.choice([line for line in self.lines if len(line.texts) > 1] or self.lines)
        line.selected = self.random.randrange(len(line.texts))

    def delete_one(self) -> None:
        if len(self.lines) > 2:
            del self.lines[self.random.randrange(len(self.lines))]

    def delete_tail(self) -> None:
        del self.lines[max(len(self.lines) - self.random.randint(1, 4), 1) :]

    def insert(self) -> None:
        self.lines.insert(self.random.randrange(len(self.lines)), Line("user", [self.own_text()]))


CALLS = {"append": 1, "edit": 1, "edit_last": 1, "select": 1, "delete_one": 1, "delete_tail": 2, "insert": 100}
"""The changes, and how many calls of the model each may take: one for each batch that it changes."""

OFTEN = [*CALLS, "append", "append", "append", "edit", "edit", "select", "delete_tail"]


async def check_story(api: httpx.AsyncClient, story: Story, known: dict[str, Line]) -> None:
    """Check each message, and learn the ids of new ones; of equal messages side by side, any one may be deleted."""
    items = await listed(api)
    assert [(item["role"], item["content"]) for item in items] == [(line.role, line.text) for line in story.lines]
    for index, (line, item) in enumerate(zip(story.lines, items, strict=True)):
        if not line.id:
            assert item["id"] not in known
            line.id = item["id"]
        elif line.id != item["id"]:
            assert (line.role, line.text) == (known[item["id"]].role, known[item["id"]].text)
            story.lines[index] = line = known[item["id"]]
        known[line.id] = line
        assert (item["swipes"], item["selected_swipe"]) == (line.texts, line.selected)
        assert item["edited"] == bool(line.revisions)


async def send_story(api: httpx.AsyncClient, story: Story) -> Json:
    return await resend(api, [{"role": line.role, "content": line.text} for line in story.lines])


@pytest.mark.parametrize("seed", range(6))
async def test_each_change_of_a_story_costs_what_it_changes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, seed: int
) -> None:
    story = Story(Random(seed), 40)
    known: dict[str, Line] = {}
    await put(api, settings={"memos": {"every_messages": 4}})
    await send_story(api, story)
    await check_story(api, story, known)
    clock.step(2)
    await dispatcher.drain()
    for _ in range(40):
        swiped = story.random.choice(story.lines)
        if story.random.random() < 0.3 and (text := story.new_text()) not in swiped.texts:
            await add_swipe(api, swiped.id, text)
            swiped.texts.append(text)
            swiped.selected = len(swiped.texts) - 1
            clock.step(2)
            await dispatcher.drain()
        change = story.random.choice(OFTEN)
        getattr(story, change)()
        line, calls = (await get(api, ""))["line"], len(model.requests)
        outcome = await send_story(api, story)
        clock.step(2)
        await dispatcher.drain()
        assert len(model.requests) - calls <= CALLS[change], change
        assert outcome["line"] == line or change == "insert"
        await check_story(api, story, known)
        again = await send_story(api, story)
        assert again == {"added": 0, "changed": 0, "removed": 0, "line": outcome["line"]}
    for one in story.lines:
        revisions = (await get(api, f"/messages/{one.id}/revisions"))["items"]
        assert [(item["swipe"], item["content"]) for item in reversed(revisions)] == one.revisions


@pytest.mark.parametrize("seed", range(3))
async def test_several_changes_at_once_stay_on_the_line(api: httpx.AsyncClient, seed: int) -> None:
    random = Random(seed)
    story = Story(random, 60)
    story.repeats = 0
    line = (await send_story(api, story))["line"]
    for _ in range(25):
        before = [one.text for one in story.lines]
        changes = random.choices(["edit", "edit", "edit_last", "delete_one", "delete_tail", "append", "append"], k=4)
        for change in changes:
            getattr(story, change)()
        outcome = await send_story(api, story)
        assert outcome["line"] == line, (before, [one.text for one in story.lines])
        assert sum(outcome[name] for name in ("added", "changed", "removed")) <= 4 + 3 * changes.count("delete_tail")
        items = await listed(api)
        assert [(item["role"], item["content"]) for item in items] == [(one.role, one.text) for one in story.lines]


async def test_an_edit_to_the_former_text_of_another_stays(api: httpx.AsyncClient) -> None:
    texts = ["Before.", "Aye.", "The lamp is red.", "Aye.", "Behind."]
    await append(api, [said(n, content=text) for n, text in enumerate(texts, start=1)])
    line = (await get(api, ""))["line"]
    edited = ["The lamp is red.", "Aye.", "It went out.", "Aye.", "Behind."]
    outcome = await resend(api, [said(n, content=text) for n, text in enumerate(edited, start=1)])
    assert outcome == {"added": 0, "changed": 2, "removed": 0, "line": line}
    assert [(one["id"], one["content"]) for one in await listed(api)] == [
        (f"m{n}", text) for n, text in enumerate(edited, start=1)
    ]
