"""The segment `diary` changes only when the history is cut; `diary_recent` has the later entries."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import httpx

from app.diary.held import Held, find_held, hold, word_held, word_recent
from app.diary.wording import Written
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle
from tests.diary.diaries import KAI, MIRA, change, discard, entries, keep_diary, letters, prompts, save, write
from tests.scripted_model import ScriptedModel
from tests.talk import Json, add_swipe, append, context, cut_off, ok, put, select_swipe, soft_delete, talk

AT = datetime(2026, 4, 1, tzinfo=UTC)
FOLDED = "04/01: Mira came ashore, and I gave her the oil that I had promised."


def worded(*numbers: int) -> str:
    return "\n\n".join(f"## 04/01 — memo entry\n{letters(n)}" for n in numbers)


def diary_of(*numbers: int, folded: str = "") -> str:
    return "\n\n".join(part for part in ("## Diary", folded, worded(*numbers)) if part)


def recent_of(*numbers: int) -> str:
    return f"## Diary, newest entries\n\n{worded(*numbers)}"


async def begin(api: httpx.AsyncClient, *characters: Json, last: int = 2, **diary: int) -> None:
    """A chat whose history is cut to 2 messages by the fifth."""
    await keep_diary(api, *characters, **diary)
    history = {"keep_messages": 2, "grow_messages": 2, "edges": "every_message"}
    await put(api, settings={"history": history}, status=200)
    await append(api, talk(1, last))


# --- from cut to cut ---


async def test_entries_enter_the_diary_at_the_cut(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save(api, letters(1))  # at message 2
    assert await prompts(api) == ("", recent_of(1))
    await append(api, talk(3, 4))
    await save(api, letters(2))  # at message 4
    assert await prompts(api) == ("", recent_of(1, 2))
    await append(api, talk(5, 5))
    assert (await context(api))["history"]["anchor_seq"] == 4
    assert await prompts(api) == (diary_of(1), recent_of(2))


async def test_the_prefix_stays_the_same_between_cuts(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save(api, letters(1))
    await append(api, talk(3, 5))
    former = await context(api, format="anthropic")
    await append(api, talk(6, 6))
    await save(api, letters(2))
    await write(api, letters(3))
    now = await context(api, format="anthropic")
    assert now["history"]["anchor_seq"] == former["history"]["anchor_seq"] == 4
    assert now["prefix_hash"] == former["prefix_hash"]
    assert await prompts(api) == (diary_of(1), recent_of(2, 3))


async def test_the_first_recent_entry_does_not_change_the_prefix(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put(api, settings={"instruction": "Use your memory well."}, status=200)
    former = (await context(api))["prefix_hash"]
    await save(api, letters(1))
    assert await prompts(api) == ("", recent_of(1))
    assert (await context(api))["prefix_hash"] == former


async def test_a_fold_shows_at_the_next_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await begin(api, lines=12)
    for n in (1, 2, 3, 4):
        await write(api, letters(n))
    await append(api, talk(3, 5))
    assert await prompts(api) == (diary_of(1, 2, 3, 4), "")
    await write(api, letters(5))
    model.script(FOLDED)
    assert await settle(dispatcher, clock) == 1
    assert await prompts(api) == (diary_of(1, 2, 3, 4), recent_of(5))
    await append(api, talk(6, 8))
    assert await prompts(api) == (diary_of(4, 5, folded=FOLDED), "")


async def test_a_fold_waits_for_the_cut_beside_an_unnamed_diary(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await begin(api, lines=12)
    await put(api, characters=[], status=200)
    await write(api, "A lamp.")
    for n in (1, 2, 3, 4):
        await write(api, letters(n), character="Kai")
    await append(api, talk(3, 5))
    former = await prompts(api, character="Kai")
    assert former == (diary_of(1, 2, 3, 4), "")
    await write(api, letters(5), character="Kai")
    model.script(FOLDED)
    assert await settle(dispatcher, clock) == 1
    assert await prompts(api, character="Kai") == (diary_of(1, 2, 3, 4), recent_of(5))


async def test_an_entry_that_changes_changes_the_diary(api: httpx.AsyncClient) -> None:
    await begin(api)
    ids = [(await write(api, letters(n)))["id"] for n in (1, 2, 3)]
    await append(api, talk(3, 5))
    await write(api, letters(4))
    await change(api, ids[0], letters(7))
    await discard(api, ids[2])
    assert await prompts(api) == (diary_of(7, 2), recent_of(4))


async def test_an_entry_hidden_by_a_swipe_returns_with_it(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save(api, letters(1))
    await write(api, letters(2))
    await append(api, talk(3, 5))
    former = await context(api)
    await add_swipe(api, "m2", "Another reply.")
    assert (await prompts(api))[0] == diary_of(2)
    await select_swipe(api, "m2", 0)
    assert (await prompts(api))[0] == diary_of(1, 2)
    assert (await context(api))["prefix_hash"] == former["prefix_hash"]


async def test_a_stale_fold_is_replaced_at_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await begin(api, lines=12)
    ids = [(await write(api, letters(n)))["id"] for n in (1, 2, 3, 4, 5)]
    model.script(FOLDED)
    assert await settle(dispatcher, clock) == 1
    await append(api, talk(3, 5))
    assert (await prompts(api))[0] == diary_of(4, 5, folded=FOLDED)
    await discard(api, ids[0])
    assert await prompts(api) == (diary_of(2, 3, 4, 5), "")


async def test_a_late_entry_waits_for_the_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await begin(api, auto_write_turns=1)  # an entry about messages 1 and 2 is due
    await write(api, letters(1))
    await append(api, talk(3, 5))
    assert (await prompts(api))[0] == diary_of(1)
    model.otherwise = lambda _request: letters(2)
    assert await settle(dispatcher, clock) == 2  # about messages 1 and 2, and about 3 and 4
    held, newest = await prompts(api)
    assert held == diary_of(1)
    assert newest.count(letters(2)) == 2


async def test_a_reply_that_is_made_again_knows_no_later_entry(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save(api, letters(1))  # at message 2
    await append(api, talk(3, 4))
    await save(api, letters(2))  # at message 4
    assert await prompts(api, before="m4") == ("", recent_of(1))
    assert await prompts(api, before="m2") == ("", "")
    assert await prompts(api) == ("", recent_of(1, 2))


async def test_a_context_before_a_message_has_its_recent_entries(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 2))
    await save(api, letters(1))
    then = await prompts(api)
    for n in range(3, 25, 2):
        await append(api, talk(n, n + 1))
        await save(api, letters(n))
    assert await prompts(api, before="m3") == then == ("", recent_of(1))


async def test_a_fold_with_later_entries_is_left_out_before_them(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await begin(api, lines=6)
    await put(api, settings={"history": {"keep_messages": 4, "grow_messages": 4}}, status=200)
    await append(api, talk(3, 6))
    await save(api, letters(1))
    await append(api, talk(7, 8))
    for n in (2, 3, 4):
        await write(api, letters(n))
    model.script(FOLDED)
    await settle(dispatcher, clock)
    await append(api, talk(9, 10))
    assert FOLDED in (await prompts(api))[0]
    assert await prompts(api, before="m8") == (diary_of(1), "")


async def test_a_renamed_diary_is_held_as_before(api: httpx.AsyncClient) -> None:
    await begin(api, KAI)
    await save(api, letters(1))
    await append(api, talk(3, 5))
    await append(api, talk(6, 6))
    await save(api, letters(2))
    former = await prompts(api)
    assert former == (diary_of(1), recent_of(2))
    ok(await api.post("/v1/chats/c/characters/Kai/rename", json={"name": "Cay"}), 200)
    assert await prompts(api) == former


async def test_every_diary_of_a_chat_is_held(api: httpx.AsyncClient) -> None:
    await begin(api, KAI, MIRA)
    await write(api, letters(1), character="Kai")
    await append(api, talk(3, 5))
    await write(api, letters(2), character="Mira")
    await write(api, letters(3), character="Kai")
    assert await prompts(api, character="Kai") == (diary_of(1), recent_of(3))
    assert await prompts(api, character="Mira") == ("", recent_of(2))
    await append(api, talk(6, 8))
    assert await prompts(api, character="Kai") == (diary_of(1, 3), "")
    assert await prompts(api, character="Mira") == (diary_of(2), "")


async def test_a_diary_begun_before_the_chat_is_shown_at_once(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    for n in range(1, 9):
        await write(api, letters(n))
    assert await prompts(api) == (diary_of(*range(1, 9)), "")
    await append(api, talk(1, 2))
    await write(api, letters(9))
    assert await prompts(api) == (diary_of(*range(1, 9)), recent_of(9))


# --- the other ways of the anchor ---


async def test_a_rewind_takes_entries_back_to_the_recent_ones(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save(api, letters(1))
    await append(api, talk(3, 4))
    await save(api, letters(2))
    await append(api, talk(5, 7))
    assert await prompts(api) == (diary_of(1, 2), "")
    await soft_delete(api, "m7")
    assert (await context(api))["history"]["anchor_seq"] == 5
    assert await prompts(api) == (diary_of(1, 2), "")
    await cut_off(api, 5)
    assert (await context(api))["history"]["anchor_seq"] == 3
    assert await prompts(api) == (diary_of(1), recent_of(2))


async def test_copies_of_a_line_hold_the_same(api: httpx.AsyncClient) -> None:
    await begin(api)
    await write(api, letters(1))
    await append(api, talk(3, 5))
    await write(api, letters(2))
    former = await prompts(api)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "here"}), 201)
    await append(api, talk(6, 8))
    assert (await prompts(api))[0] == diary_of(1, 2)
    ok(await api.post("/v1/chats/c/checkpoints/here/restore"), 201)
    assert await prompts(api) == former == (diary_of(1), recent_of(2))
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d"}), 201)
    segments = ok(await api.get("/v1/chats/d/context"), 200)["segments"]
    assert [one["text"] for one in segments if one["name"].startswith("diary")] == list(former)


async def test_switching_diaries_off_and_on_keeps_the_text(api: httpx.AsyncClient) -> None:
    await begin(api)
    await write(api, letters(1))
    await append(api, talk(3, 5))
    await write(api, letters(2))
    for enabled in (False, True):
        await put(api, settings={"diary": {"enabled": enabled}}, status=200)
        assert await prompts(api) == (diary_of(1), recent_of(2))


async def test_a_person_can_name_the_character_later(api: httpx.AsyncClient) -> None:
    await put(api, settings={"preset": "diary", "history": {"keep_messages": 2, "grow_messages": 0}})
    await put(api, settings={"history": {"edges": "every_message"}, "summary": {"enabled": False}}, status=200)
    await append(api, talk(1, 2))
    await write(api, letters(1))
    await append(api, talk(3, 4))
    await write(api, letters(2))
    former = await prompts(api)
    assert former == (diary_of(1), recent_of(2))
    await put(api, characters=[KAI], status=200)
    assert await prompts(api) == former


# --- what the recent entries are ---


async def test_older_recent_entries_are_listed_in_omitted(api: httpx.AsyncClient) -> None:
    await begin(api)
    for n in range(1, 10):
        await write(api, letters(n))
    shown = await context(api)
    assert await prompts(api) == ("", recent_of(*range(3, 10)))  # twenty lines
    (left_out,) = shown["omitted"]
    assert (left_out["name"], left_out["why"]) == ("diary_recent", "budget")
    assert left_out["tokens"] > 0
    assert [entry["in_prompt"] for entry in await entries(api)] == [False] * 2 + [True] * 7


async def test_recent_entries_are_between_history_and_time(api: httpx.AsyncClient) -> None:
    await begin(api, last=3)
    await put(api, settings={"time": True}, status=200)
    await write(api, letters(1))
    shown = await context(api)
    rows = [(one["name"], one["cacheable"]) for one in shown["segments"]]
    assert rows[-4:] == [("history", True), ("diary_recent", False), ("time", False), ("newest", False)]
    assert shown["breakpoints"][-1]["after"] == "message:m2"


async def test_the_newest_message_has_its_breakpoint_without_them(api: httpx.AsyncClient) -> None:
    await begin(api, last=3)
    assert (await context(api))["breakpoints"][-1]["after"] == "message:m3"


async def test_recent_entries_are_trimmed_after_the_time(api: httpx.AsyncClient) -> None:
    await begin(api)
    await write(api, letters(1))
    await append(api, talk(3, 5))
    await put(api, settings={"time": True}, status=200)
    await write(api, letters(2))
    tokens = (await context(api))["tokens"]
    trimmed: list[str] = []
    while len(trimmed) < 3:
        tokens -= 1
        trimmed = [one["name"] for one in (await context(api, max_tokens=tokens))["omitted"]]
    assert trimmed == ["time", "diary_recent", "diary"]


# --- pure ---


def entry(number: int, lines: int = 1) -> Written:
    content = "\n".join(f"Line {n} of {number}." for n in range(1, lines + 1))
    return Written(UUID(int=number), number, number, content, AT)


def sources(segment: Json | None) -> Sequence[str]:
    return segment["sources"] if segment else ()


def test_an_entry_without_room_at_the_cut_is_not_recent_later() -> None:
    kept = hold(2, "One line.", 3, [entry(4), entry(6), entry(7)], 6)
    assert kept == Held(2, 3, 5, [6, 7])
    assert hold(2, "One line.", 3, [entry(4), entry(6)], 9) == Held(2, 3, 3, [4, 6])
    assert hold(2, "One line.", 3, [], 9) == Held(2, 3, 3, [])
    assert find_held({"Kai": {"held": kept.to_json()}}, "Kai", ["Kai"]) == kept


def test_a_diary_holds_what_the_unnamed_one_held() -> None:
    kept = Held(None, 0, 2, [3, 4])
    former = {"": {"held": kept.to_json()}, "Ren": {"text": "## Diary\n\nFrom a former version."}}
    assert find_held(former, "Kai", ["Kai", "Ren"]) == kept
    assert find_held(former, "Ren", ["Kai", "Ren"]) is None
    assert find_held(former, "Kai", ["", "Kai", "Ren"]) == Held(None, 0, 0, [])


def test_a_held_diary_keeps_to_its_lines() -> None:
    shown = word_held(2, "First.\nSecond.", [entry(4)], "UTC", 4)
    assert shown is not None
    assert shown["text"] == "## Diary\n\nSecond.\n\n## 04/01 — memo entry\nLine 1 of 4."
    assert (shown["version"], shown["sources"]) == (2, ["diary:folded:2", f"diary:{UUID(int=4)}"])
    longer = word_held(2, "First.\nSecond.", [entry(4, 3)], "UTC", 4)
    assert longer is not None
    assert (longer["version"], sources(longer)) == (None, [f"diary:{UUID(int=4)}"])
    assert word_held(None, "", [], "UTC", 4) is None


def test_recent_entries_take_at_most_twenty_lines() -> None:
    shown = word_recent([entry(n) for n in range(1, 10)], "UTC")
    assert sources(shown) == [f"diary:{UUID(int=n)}" for n in range(3, 10)]
    assert shown is not None
    assert shown["left_out_tokens"] > 0
    alone = word_recent([entry(1, 30)], "UTC")
    assert alone is not None
    assert alone["text"].endswith("Line 30 of 1.")
    assert alone["text"].count("\n") == 21
    assert word_recent([], "UTC") is None
