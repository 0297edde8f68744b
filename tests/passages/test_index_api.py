"""What is found once messages are in the index of words, whatever happens to them afterwards."""

import random

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.passages.keys import hash_keys, list_wanted
from app.passages.lookup import MOST_WITH_KEY
from app.passages.words import list_patterns
from app.search.queries import Wanted, look_up_in_chat
from app.search.service import statements_in_use
from app.search.statements import MAX_LOOKED_UP
from tests.background import locked_chat, running, settle
from tests.facts.asking import KAI, USER, begin
from tests.search.finding import message
from tests.talk import CHAT, Json, add_swipe, append, cut_off, edit, get, ok, put, reimport, select_swipe, soft_delete

WORDS = ["lantern", "ferryman", "copper", "orchard", "violin", "harvest", "quarry", "zephyr"]


async def find(api: httpx.AsyncClient, query: str, chat: str = CHAT) -> set[str]:
    """The ids of the messages that a search finds."""
    answer = await api.post(f"{chat}/memories/search", json={"query": query, "limit": 100, "kinds": ["message"]})
    return {hit["id"] for hit in ok(answer, 200)["hits"]}


def sail(first: int, last: int) -> list[Json]:
    return [message(n, f"We sail on, day {n}.") for n in range(first, last + 1)]


async def begin_indexed(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A chat of 128 messages in the index; m5 has a lantern, m70 a violin."""
    await begin(api, memos={"enabled": False})
    messages = sail(1, 128)
    messages[4]["content"], messages[69]["content"] = "A green lantern.", "A violin plays."
    await append(api, messages)
    await settle(dispatcher, clock)


async def read_progress(database: Database, tenant: str) -> Json:
    async with database.raw() as connection:
        query = "SELECT cursors -> 'passages' FROM chats WHERE chat_key = $1 AND line_status = 'current'"
        found: Json = await connection.fetchval(query, chat_key(tenant, "c")) or {}
    return {name: value for name, value in found.items() if name not in {"chat", "analysis"}}


async def clear_keys(database: Database, tenant: str) -> None:
    """Leave the rows of the index of the chat `c` without keys."""
    async with database.raw() as connection:
        await connection.execute("UPDATE passages SET keys = '{}' WHERE chat_key = $1", chat_key(tenant, "c"))


async def remove_key(database: Database, tenant: str, key: str) -> None:
    """Leave the rows of the index of the chat `c` without a key, as those of a former release."""
    owner = chat_key(tenant, "c")
    async with database.raw() as connection:
        query = "UPDATE passages SET keys = array_remove(keys, $2) WHERE chat_key = $1"
        await connection.execute(query, owner, hash_keys(owner, [key])[0])


async def forget_analysis(database: Database, tenant: str) -> None:
    """Leave the cursor of the chat `c` as a former release wrote it."""
    async with database.raw() as connection:
        query = "UPDATE chats SET cursors = cursors #- '{passages,analysis}' WHERE chat_key = $1"
        await connection.execute(query, chat_key(tenant, "c"))


async def count_rows(database: Database, tenant: str, chat: str = "c") -> int:
    async with database.raw() as connection:
        query = "SELECT count(*) FROM passages WHERE chat_key = $1"
        return int(await connection.fetchval(query, chat_key(tenant, chat)))


async def test_messages_are_found_before_and_in_the_index(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin_indexed(api, dispatcher, clock)
    assert await read_progress(database, tenant) == {"seq": 128}
    assert await find(api, "lantern") == {"m5"}
    assert await find(api, "lanterns violins") == {"m5", "m70"}
    await append(api, [message(129, "Another lantern.")])
    assert await find(api, "lantern") == {"m5", "m129"}


async def begin_with_names(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, language: str) -> None:
    """A chat of 64 messages in the index; m5 has the name Will, m10 the verb."""
    await begin(api, memos={"enabled": False})
    await put(api, status=200, language=language)
    messages = sail(1, 64)
    messages[4]["content"], messages[9]["content"] = "A green lantern for Will.", "We will sail."
    await append(api, messages)
    await settle(dispatcher, clock)


async def test_a_name_is_found_in_the_index_of_former_releases(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin_with_names(api, dispatcher, clock, "en")
    assert await find(api, "And Will?") == {"m5"}
    await clear_keys(database, tenant)
    assert (await find(api, "lantern"), await find(api, "And Will?")) == (set(), set()), "the index has all names"
    await forget_analysis(database, tenant)
    assert (await find(api, "lantern"), await find(api, "And Will?")) == (set(), {"m5"})
    await edit(api, "m5", content="A green lantern for Bill.")
    assert await find(api, "And Will?") == set()


async def test_a_name_of_a_former_index_counts_in_the_choice(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    messages = [message(n, f"A lantern, day {n}.") for n in range(1, MAX_LOOKED_UP + 149)]
    messages[4]["content"] = "A lantern for Will."
    await append(api, messages)
    await settle(dispatcher, clock)
    for removed in ("", "Will"):
        await remove_key(database, tenant, removed)
        await forget_analysis(database, tenant)
        hits = ok(await api.post(f"{CHAT}/memories/search", json={"query": "The lantern and Will"}), 200)["hits"]
        assert hits[0]["id"] == "m5", f"without {removed!r}"


async def test_an_index_of_a_former_release_is_made_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    messages = sail(1, 1_344)
    for n in (5, 700):
        messages[n - 1]["content"] = f"A lantern for Will, day {n}."
    for first in (0, 672):
        await append(api, messages[first : first + 672])
    await settle(dispatcher, clock)
    await clear_keys(database, tenant)
    await forget_analysis(database, tenant)
    assert await find(api, "And Will?") == {"m700"}, "one of the newest 1,000"
    await append(api, sail(1_345, 1_407))
    await settle(dispatcher, clock)
    assert await find(api, "lantern") == set(), "not until the index is due"
    await append(api, sail(1_408, 1_408))
    clock.step(5)
    await dispatcher.drain()
    assert await find(api, "And Will?") == {"m5", "m700"}
    assert await find(api, "lantern") == {"m5", "m700"}
    assert await read_progress(database, tenant) == {"seq": 1_408}


async def test_an_index_in_another_language_is_made_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin_with_names(api, dispatcher, clock, "en")
    await put(api, status=200, language="de")
    assert await find(api, "will") == set()
    await append(api, sail(65, 128))
    await settle(dispatcher, clock)
    assert await find(api, "will") == {"m5", "m10"}


@pytest.mark.parametrize(("under", "most"), [(f"{CHAT}/memories/search", 1_000), (f"{USER}/memories/search", 150)])
async def test_only_the_newest_are_compared_with_a_name(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    database: Database,
    tenant: str,
    under: str,
    most: int,
) -> None:
    await begin(api, memos={"enabled": False}, search={"across_chats": True})
    messages = sail(1, 1_024)
    for n in (1_024 - most, 1_025 - most):
        messages[n - 1]["content"] = "A green lantern for Will."
    for first in (0, 512):
        await append(api, messages[first : first + 512])
    await settle(dispatcher, clock)
    await clear_keys(database, tenant)
    await forget_analysis(database, tenant)
    hits = ok(await api.post(under, json={"query": "And Will?", "kinds": ["message"]}), 200)["hits"]
    assert [hit["id"] for hit in hits] == [f"m{1_025 - most}"]


async def test_what_the_index_finds_is_not_compared_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin_with_names(api, dispatcher, clock, "en")
    await forget_analysis(database, tenant)
    key, keys = chat_key(tenant, "c"), list_wanted(["Will"])
    wanted = Wanted(list_patterns(["Will"]), keys, clock(), kinds=["message"])
    async with database.raw() as connection:
        line_id = await connection.fetchval("SELECT line_id FROM chats WHERE chat_key = $1", key)
        texts = await look_up_in_chat(connection, statements_in_use().of_chat, (key, line_id), wanted)
    assert [row["source"] for row in texts.rows] == ["message:m5"]


async def test_other_languages_have_no_frequent_words_of_english(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin_with_names(api, dispatcher, clock, "de")
    assert await find(api, "will") == {"m5", "m10"}


async def test_of_a_frequent_word_the_newest_are_found(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, memos={"enabled": False})
    for first in range(1, MOST_WITH_KEY + 600, 800):
        await append(api, sail(first, first + 799))
    await settle(dispatcher, clock)
    await edit(api, "m7", content="We sail with a lantern.")
    await append(api, [message(1_601, "Sail on.")])
    newest = {f"m{n}" for n in range(1_502, 1_602)}
    assert await find(api, "sail") == newest
    assert await find(api, "sail lantern") == {"m7", *newest} - {"m1502"}


async def test_an_append_schedules_the_index_once_in_64_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    due = []
    for n in range(1, 66):
        await append(api, sail(n, n))
        due.append((await get(api, ""))["work"]["due"])
    assert due == [0] * 63 + [1, 1]
    await settle(dispatcher, clock)
    assert await read_progress(database, tenant) == {"seq": 65}
    assert (await get(api, ""))["work"]["due"] == 0


async def test_an_edit_is_found_by_its_new_text_at_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin_indexed(api, dispatcher, clock)
    await edit(api, "m5", content="A copper bell.")
    assert await read_progress(database, tenant) == {"seq": 128, "changed": [5]}
    assert (await find(api, "lantern"), await find(api, "copper")) == (set(), {"m5"})
    await append(api, sail(129, 192))
    await settle(dispatcher, clock)
    assert await read_progress(database, tenant) == {"seq": 192}
    assert await count_rows(database, tenant) == 192
    assert (await find(api, "lantern"), await find(api, "copper")) == (set(), {"m5"})
    await soft_delete(api, "m5")
    assert await find(api, "copper") == set()


async def test_a_swipe_back_is_found_again(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    await begin_indexed(api, dispatcher, clock)
    await add_swipe(api, "m70", "A copper bell.")
    assert (await find(api, "violin"), await find(api, "copper")) == (set(), {"m70"})
    await select_swipe(api, "m70", 0)
    assert (await find(api, "violin"), await find(api, "copper")) == ({"m70"}, set())


async def test_many_edits_are_put_into_the_index_without_new_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin_indexed(api, dispatcher, clock)
    for n in range(10, 26):
        await edit(api, f"m{n}", content=f"Copper bell {n}.")
    await settle(dispatcher, clock)
    assert await read_progress(database, tenant) == {"seq": 128}
    assert await find(api, "copper") == {f"m{n}" for n in range(10, 26)}


async def test_truncated_messages_are_found_after_a_restore(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin_indexed(api, dispatcher, clock)
    ok(await api.post(f"{CHAT}/checkpoints", json={"name": "before"}), 201)
    await cut_off(api, 60)
    await append(api, [message(n, "An orchard.") for n in range(160, 230)])
    await settle(dispatcher, clock)
    assert (await find(api, "violin"), len(await find(api, "orchard"))) == (set(), 70)
    ok(await api.post(f"{CHAT}/checkpoints/before/restore"), 201)
    assert await read_progress(database, tenant) == {"seq": 128}
    assert (await find(api, "violin"), await find(api, "orchard")) == ({"m70"}, set())


async def test_the_rows_of_a_deleted_line_are_deleted(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin_indexed(api, dispatcher, clock)
    former = (await get(api, ""))["line"]
    messages = [*sail(1, 69), message(900, "A copper bell."), *sail(71, 160)]
    await reimport(api, messages)
    await append(api, sail(161, 200))
    await settle(dispatcher, clock)
    assert await count_rows(database, tenant) == 202
    assert (await find(api, "violin"), await find(api, "copper")) == (set(), {"m900"})
    ok(await api.delete(f"{CHAT}/lines/{former}"), 204)
    assert await count_rows(database, tenant) == 200
    ok(await api.delete(CHAT), 204)
    assert await count_rows(database, tenant) == 0


async def test_a_fork_is_searched_and_gets_an_index_of_its_own(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin_indexed(api, dispatcher, clock)
    ok(await api.post(f"{CHAT}/fork", json={"chat_id": "f"}), 201)
    assert await find(api, "lantern", "/v1/chats/f") == {"m5"}
    await settle(dispatcher, clock)
    assert await count_rows(database, tenant, "f") == 128, "without a further message"
    await append(api, sail(129, 192), "f")
    await settle(dispatcher, clock)
    assert await count_rows(database, tenant, "f") == 192
    assert await find(api, "lantern", "/v1/chats/f") == {"m5"}


async def test_a_speaker_is_not_found_by_its_name(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, characters=[KAI], settings={"memos": {"enabled": False}})
    await append(api, [message(2, "We met Kai."), *[message(n, "We sail on.", name="Kai") for n in range(4, 140, 2)]])
    assert await find(api, "Kai") == {"m2"}
    await settle(dispatcher, clock)
    assert await find(api, "Kai") == {"m2"}


async def test_a_long_import_is_put_into_the_index_piece_by_piece(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    await append(api, [message(1, "A green lantern."), *sail(2, 1_000)])
    clock.step(5)
    assert await dispatcher.drain() == 4
    assert await read_progress(database, tenant) == {"seq": 1_000}
    assert await find(api, "lantern") == {"m1"}


async def test_an_edit_while_the_index_is_made_is_not_lost(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await begin(api, memos={"enabled": False})
    await append(api, sail(1, 64))
    clock.step(5)
    async with running(dispatcher), locked_chat(database, tenant) as locked:
        del locked  # the worker has read the messages, and waits for the line
    await edit(api, "m9", content="A green lantern.")
    for _ in range(3):
        clock.step(61)
        await dispatcher.drain()
    assert (await read_progress(database, tenant))["seq"] == 64
    assert await find(api, "lantern") == {"m9"}


@pytest.mark.parametrize("seed", range(3))
async def test_search_finds_the_current_texts_of_random_stories(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, seed: int
) -> None:
    chance = random.Random(seed)
    await begin(api, memos={"enabled": False})
    texts: dict[str, str] = {}
    kept: dict[str, str] = {}
    for step in range(40):
        match chance.choice(["append", "append", "edit", "edit", "delete", "cut", "index", "checkpoint", "restore"]):
            case "append":
                new = [message(1_000 * step + n, f"The {chance.choice(WORDS)} {n}.") for n in range(1, 70)]
                await append(api, new)
                texts |= {one["id"]: one["content"] for one in new}
            case "edit" if texts:
                for message_id in chance.sample(sorted(texts), min(len(texts), 7)):
                    texts[message_id] = f"The {chance.choice(WORDS)} again."
                    await edit(api, message_id, content=texts[message_id])
            case "delete" if texts:
                message_id = chance.choice(sorted(texts))
                await soft_delete(api, message_id)
                del texts[message_id]
            case "cut" if len(texts) > 50:
                at = len(texts) - chance.randint(1, 40)
                await cut_off(api, (await get(api, f"/messages/{list(texts)[at]}"))["seq"])
                texts = dict(list(texts.items())[:at])
            case "index":
                await settle(dispatcher, clock, 61)
            case "checkpoint" if not kept and texts:
                ok(await api.post(f"{CHAT}/checkpoints", json={"name": "kept"}), 201)
                kept = dict(texts)
            case "restore" if kept:
                ok(await api.post(f"{CHAT}/checkpoints/kept/restore"), 201)
                texts = dict(kept)
        word = chance.choice(WORDS)
        expected = {message_id for message_id, text in texts.items() if word in text}
        found = await find(api, word)
        assert found <= expected
        assert len(found) == min(len(expected), 100), (step, word)
