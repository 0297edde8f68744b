"""What is learnt from messages is a memory while one of them has the text that was read; each memory is there once."""

import asyncio

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.ids import chat_key
from tests.background import holding, until_waited_for
from tests.facts.asking import USER, begin, checkpoint, fork, learn_wide, restore, switch_to
from tests.memories.asking import Learner, delete, history, known, write
from tests.talk import CHAT, Act, add_swipe, append, cut_off, edit, get, hide, ok, said, select_swipe, soft_delete, talk

TOMAS = "Mira's brother Tomas works as a ferryman at the harbour."
TWO_CATS = "Mira has lived with two cats in a small house near the old lighthouse since spring."
THREE_CATS = TWO_CATS.replace("two", "three")


async def test_a_learnt_item_is_stored_as_a_memory(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    found = await learn(TOMAS, "m1", "m3", category="personal", importance=0.8, tags=("family",))
    assert found.outcome == "new"
    (memory,) = (await get(api, "/state"))["layers"]["memories"]
    assert (memory["content"], memory["scope"], memory["origin"]) == (TOMAS, "chat", "model")
    assert (memory["category"], memory["importance"], memory["tags"]) == ("personal", 0.8, ["family"])


TAKEN_BACK: dict[str, tuple[Act, Act]] = {
    "swipe": (lambda api: add_swipe(api, "m2", "No."), lambda api: select_swipe(api, "m2", 0)),
    "edit": (
        lambda api: edit(api, "m2", content="No."),
        lambda api: edit(api, "m2", content=said(2)["content"]),
    ),
    "hide": (lambda api: hide(api, (2, 2)), lambda api: hide(api, (2, 2), hidden=False)),
    "exclude": (lambda api: edit(api, "m2", excluded=True), lambda api: edit(api, "m2", excluded=False)),
}


@pytest.mark.parametrize("scope", ["chat", "character", "user", "global"])
@pytest.mark.parametrize("way", TAKEN_BACK)
async def test_a_memory_leaves_and_returns_with_its_message(
    api: httpx.AsyncClient, learn: Learner, scope: str, way: str
) -> None:
    take_back, bring_back = TAKEN_BACK[way]
    await learn_wide(api, scope=scope)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await learn(TOMAS, "m2")
    elsewhere = set() if scope == "chat" else {TOMAS}
    assert await known(api) == {TOMAS}
    assert await known(api, "d") == elsewhere
    await take_back(api)
    assert await known(api) == set()
    assert await known(api, "d") == set()
    await bring_back(api)
    assert await known(api) == {TOMAS}
    assert await known(api, "d") == elsewhere


async def test_a_memory_stays_while_one_of_its_messages_exists(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await learn(TOMAS, "m1", "m3")
    await soft_delete(api, "m1")
    assert await known(api) == {TOMAS}
    await soft_delete(api, "m3")
    assert await known(api) == set()


async def test_a_wide_memory_changes_the_etags_of_other_chats(api: httpx.AsyncClient, learn: Learner) -> None:
    await learn_wide(api)
    await begin(api, "d")
    await append(api, talk(1, 2))
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]
    await learn(TOMAS, "m2")
    learnt = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
    assert learnt.status_code == 200
    tag = learnt.headers["etag"]
    await soft_delete(api, "m2")
    assert (await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})).status_code == 200


async def test_a_message_changed_since_teaches_nothing(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await learn(TOMAS, "m2", read="What it said before.")
    assert await known(api) == set()
    await edit(api, "m2", content="What it said before.")
    assert await known(api) == {TOMAS}
    assert (await learn("The lamp is green.", "nowhere")).outcome == "untaught"


async def test_the_same_words_again_add_a_source(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    first = await learn(TOMAS, "m1")
    again = await learn(f"  {TOMAS.upper()} ", "m3", "m1")
    assert (again.outcome, again.memory_id) == ("duplicate", first.memory_id)
    await soft_delete(api, "m1")
    assert await known(api) == {TOMAS}


async def test_a_similar_newer_memory_supersedes_the_former_one(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    first = await learn(TWO_CATS, "m1")
    clock.step(60)
    second = await learn(THREE_CATS, "m3")
    assert (second.outcome, second.memory_id) == ("supersedes", first.memory_id)
    assert await known(api) == {THREE_CATS}
    await soft_delete(api, "m3")
    assert await known(api) == {TWO_CATS}


async def test_another_name_does_not_replace_a_memory(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    ida = "My sister Ida was born in Bergen on March 3rd 1990, and she lives there."
    eva = ida.replace("Ida", "Eva").replace("1990", "1992")
    await learn(ida, "m1")
    assert (await learn(eva, "m3")).outcome == "new"
    assert await known(api) == {ida, eva}


async def test_the_threshold_is_a_setting(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, memories={"dedupe_threshold": 1})
    await append(api, talk(1, 4))
    await learn(TWO_CATS, "m1")
    assert (await learn(THREE_CATS, "m3")).outcome == "new"
    assert await known(api) == {TWO_CATS, THREE_CATS}


async def test_scopes_are_compared_apart(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await learn_wide(api, "d")
    await append(api, talk(1, 4))
    ok(await api.post("/v1/chats/d/messages", json={"messages": talk(1, 2)}), 201)
    await learn(TOMAS, "m1")
    assert (await learn(TOMAS, "m1", chat_id="d")).outcome == "new"


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_memory_follows_restores_and_line_switches(api: httpx.AsyncClient, learn: Learner, scope: str) -> None:
    await learn_wide(api, scope=scope)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await learn(TWO_CATS, "m2")
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    await learn(TOMAS, "m4")
    line = (await get(api, ""))["line"]
    await restore(api, "before")
    assert await known(api) == {TWO_CATS}
    assert await known(api, line=line) == {TWO_CATS, TOMAS}
    assert await known(api, "d") == (set() if scope == "chat" else {TWO_CATS})
    await switch_to(api, line)
    assert await known(api) == {TWO_CATS, TOMAS}
    assert await known(api, "d") == (set() if scope == "chat" else {TWO_CATS, TOMAS})


async def test_supersession_ends_with_its_line(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await learn_wide(api)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await learn(TWO_CATS, "m2")
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    clock.step(60)
    await learn(THREE_CATS, "m4")
    assert await known(api, "d") == {THREE_CATS}
    await restore(api, "before")
    assert await known(api) == await known(api, "d") == {TWO_CATS}


async def test_a_truncation_removes_the_memories_of_its_messages(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await learn(TWO_CATS, "m2")
    await learn(TOMAS, "m4")
    await cut_off(api, 3)
    assert await known(api) == {TWO_CATS}


async def test_a_fork_has_only_the_memories_before_it(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await learn(TOMAS, "m4")
    await fork(api, "before", at_seq=2)
    await fork(api, "after", at_seq=4)
    assert await known(api, "before") == set()
    assert (await api.delete(CHAT)).status_code == 204
    assert await known(api, "after") == {TOMAS}


async def test_a_memory_of_two_chats_stays_until_both_are_erased(api: httpx.AsyncClient, learn: Learner) -> None:
    await learn_wide(api)
    await learn_wide(api, "d")
    for chat_id in ("c", "d"):
        ok(await api.post(f"/v1/chats/{chat_id}/messages", json={"messages": talk(1, 2)}), 201)
    first = await learn(TOMAS, "m2")
    assert (await learn(TOMAS, "m2", chat_id="d")).memory_id == first.memory_id
    await begin(api, "e")
    assert (await api.delete(CHAT)).status_code == 204
    assert await known(api, "e") == {TOMAS}
    assert (await api.delete("/v1/chats/d")).status_code == 204
    assert await known(api, "e") == set()
    assert (await api.delete(USER)).status_code == 204


async def test_memories_follow_their_messages_in_a_reimport(api: httpx.AsyncClient, learn: Learner) -> None:
    await learn_wide(api)
    messages = talk(1, 4)
    await append(api, messages)
    await learn(TOMAS, "m1", "m4")
    await learn(TWO_CATS, "m3")
    moved = [messages[0], said(9, id="new", content="In between."), messages[1], messages[3]]
    answer = ok(await api.put(f"{CHAT}/messages", json={"messages": moved}), 200)
    assert answer["line"] is not None
    assert await known(api) == {TOMAS}
    await soft_delete(api, "m1")
    assert await known(api) == {TOMAS}
    await edit(api, "m4", content="No.")
    assert await known(api) == set()


async def test_an_earlier_statement_does_not_replace_a_later_one(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    early = clock()
    clock.step(60)
    later = await learn(THREE_CATS, "m3")
    clock.step(60)
    again = await learn(TWO_CATS, "m1", at=early)
    assert (again.outcome, again.memory_id) == ("supersedes", later.memory_id)
    assert await known(api) == {THREE_CATS}
    assert await history(api, later.memory_id) == [THREE_CATS, TWO_CATS]


async def test_a_persons_words_are_not_superseded(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await write(api, TWO_CATS)
    clock.step(60)
    assert (await learn(THREE_CATS, "m1")).outcome == "new"
    assert await known(api) == {TWO_CATS, THREE_CATS}
    assert (await learn(TWO_CATS, "m3")).outcome == "duplicate"
    assert (await learn(THREE_CATS.replace("three", "four"), "m4")).outcome == "supersedes"
    assert await known(api) == {TWO_CATS, THREE_CATS.replace("three", "four")}


async def test_a_memory_that_is_being_taken_back_is_learnt(
    api: httpx.AsyncClient, learn: Learner, database_url: str, tenant: str
) -> None:
    await learn_wide(api)
    await learn_wide(api, "d")
    await append(api, talk(1, 2))
    ok(await api.post("/v1/chats/d/messages", json={"messages": talk(1, 2)}), 201)
    first = await learn(TOMAS, "m1")
    taking_back = f"DELETE FROM teachings WHERE chat_key = '{chat_key(tenant, 'c')}'"
    async with holding(database_url, taking_back) as holder:
        learning = asyncio.create_task(learn(TOMAS, "m1", chat_id="d"))
        await until_waited_for(holder)
    found = await learning
    assert (found.outcome, found.memory_id != first.memory_id) == ("new", True)
    assert await known(api, "d") == {TOMAS}


ALLERGIC = "{} is allergic to peanuts, hazelnuts, walnuts and all kinds of shellfish."


async def test_a_memory_that_begins_with_another_name_is_another_one(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    ida, eva = ALLERGIC.format("Ida"), ALLERGIC.format("Eva")
    assert [one.outcome for one in await learn.learn_together([ida, eva], "m1")] == ["new", "new"]
    assert await known(api) == {ida, eva}
    assert (await learn(ida, "m3")).outcome == "duplicate"


async def test_another_name_can_be_learnt_after_one_was_forgotten(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    ida, eva = ALLERGIC.format("Ida"), ALLERGIC.format("Eva")
    await delete(api, (await learn(eva, "m1")).memory_id)
    assert (await learn(ida, "m3")).outcome == "new"
    assert (await learn(ida.replace("all kinds", "all the kinds"), "m3")).outcome == "supersedes"
    assert (await learn(eva.replace("all kinds", "all the kinds"), "m3")).outcome == "forgotten"


async def test_the_opposite_of_a_forgotten_memory_can_be_learnt(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    going = "Mira will go to the wedding of her cousin in Lisbon next summer."
    await delete(api, (await learn(going, "m1")).memory_id)
    assert (await learn(going.replace("next", "this next"), "m3")).outcome == "forgotten"
    assert (await learn(going.replace("will", "will not"), "m3")).outcome == "new"
    assert await known(api) == {going.replace("will", "will not")}
