"""Searching a chat, and all chats of a user, over HTTP."""

import re
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle
from tests.facts.asking import KAI, USER, begin, held, set_fact
from tests.memories.asking import Learner, write
from tests.search.finding import LANTERN, TOMAS, message
from tests.statements import watched
from tests.talk import CHAT, Json, add_swipe, append, edit, hide, ok, put, soft_delete

LAYER_TABLES = re.compile(r"FROM (memos|diary_entries|scenes|statements)\b")


async def search(api: httpx.AsyncClient, query: str, *, under: str = CHAT, status: int = 200, **more: Any) -> Json:
    return ok(await api.post(f"{under}/memories/search", json={"query": query, **more}), status)


async def found(api: httpx.AsyncClient, query: str, **more: Any) -> list[str]:
    """Which results a search has, best first: `kind:id`."""
    return [f"{hit['kind']}:{hit['id']}" for hit in (await search(api, query, **more))["hits"]]


async def test_a_message_of_the_history_is_found(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, [message(1, LANTERN), message(2, "We sail on.")])
    answer = await search(api, "Which lantern is green?")
    (hit,) = answer["hits"]
    assert answer["mode"] == "text"
    assert (hit["kind"], hit["id"], hit["chat_id"], hit["text"]) == ("message", "m1", "c", LANTERN)
    assert hit["snippet"] == "The **lantern** of the north pier is made of **green** glass."
    assert hit["sources"] == ["message:m1"]
    assert (hit["first_seq"], hit["last_seq"]) == (1, 1)
    assert hit["sent_at"] == (await api.get(f"{CHAT}/messages/m1")).json()["sent_at"]
    assert set(hit["parts"]) == {"vector", "text", "importance", "recency", "neighbours"}
    assert hit["score"] == pytest.approx(sum(hit["parts"].values()))


async def test_the_last_words_of_long_messages_are_found(api: httpx.AsyncClient) -> None:
    await begin(api)
    notes = [message(n, f"Garden note {n}: the roses are late.") for n in range(1, 131)]
    words = " ".join(f"word{n}" for n in range(3_000))
    await append(api, [*notes, message(131, f"{words} garden zebrafish")])
    assert (await found(api, "garden zebrafish", limit=5))[0] == "message:m131"


async def test_only_the_text_that_holds_is_found(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, [message(n, f"We sail on, day {n}.") for n in range(1, 5)])
    await edit(api, "m2", content=LANTERN)
    assert await found(api, "lantern") == ["message:m2"]
    await add_swipe(api, "m2", "The ferry left.")
    assert await found(api, "lantern") == []
    assert await found(api, "ferry") == ["message:m2"]
    await soft_delete(api, "m2")
    assert await found(api, "ferry") == []
    await hide(api, (3, 3))
    assert await found(api, "day") == ["message:m4", "message:m1"]


async def test_every_layer_is_searched(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, diary={"enabled": True})
    await append(api, [message(1, LANTERN), message(2, "Good."), message(3, "Yes.")])
    memory = await learn("Green glass calms Mira.", "m1", "m3", category="preference")
    fact = await set_fact(api, "glass", "green")
    memo = ok(await api.post(f"{CHAT}/memos", json={"text": "They found green glass."}), 201)
    entry = ok(await api.post(f"{CHAT}/diary", json={"content": "I love green glass."}), 201)
    ok(await api.put(f"{CHAT}/summary", json={"text": "It is about green glass."}), 200)
    ok(await api.put(f"{CHAT}/recap", json={"text": "Green glass matters."}), 200)
    answer = await search(api, "green glass", limit=100)
    by_kind = {hit["kind"]: hit for hit in answer["hits"]}
    assert set(by_kind) == {"message", "memory", "fact", "memo", "diary", "summary", "recap"}
    assert by_kind["memory"]["id"] == str(memory.memory_id)
    assert by_kind["memory"]["sources"] == ["message:m1", "message:m3"]
    assert by_kind["fact"]["text"] == f"glass: {fact['value']}"
    assert by_kind["memo"]["id"] == memo["id"]
    assert by_kind["diary"]["id"] == entry["id"]
    for kind in by_kind:
        assert {hit["kind"] for hit in (await search(api, "green glass", kinds=[kind]))["hits"]} == {kind}


async def test_a_text_about_no_message_names_none(api: httpx.AsyncClient) -> None:
    await begin(api, diary={"enabled": True})
    await append(api, [message(1, LANTERN), message(2, "Good.")])
    ok(await api.post(f"{CHAT}/memos", json={"text": "They found green glass."}), 201)
    ok(await api.post(f"{CHAT}/diary", json={"content": "I love green glass."}), 201)
    ok(await api.post(f"{CHAT}/tools/save_memory", json={"content": "Green glass shines."}), 200)
    hits = (await search(api, "green glass", kinds=["memo", "diary"]))["hits"]
    sources = {hit["text"]: hit["sources"] for hit in hits}
    assert sources == {
        "They found green glass.": [],
        "I love green glass.": [],
        "Green glass shines.": ["message:m2"],  # the reply that wrote it
    }
    sent_at = (await api.get(f"{CHAT}/messages/m2")).json()["sent_at"]
    assert {(hit["first_seq"], hit["last_seq"], hit["sent_at"]) for hit in hits} == {(2, 2, sent_at)}


async def test_a_memory_names_the_ends_of_what_taught_it(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, [message(n, f"We sail on, day {n}.") for n in range(1, 71)])
    await learn("Green glass calms Mira.", "m1", "m9", "m70")
    (hit,) = (await search(api, "glass", kinds=["memory"]))["hits"]
    assert hit["sources"] == ["message:m1", "message:m70"]


async def test_a_fact_names_the_messages_that_taught_it(api: httpx.AsyncClient) -> None:
    await begin(api, preset="agent", consolidation={"enabled": False})
    await append(api, [message(1, "I am Mira."), message(2, "Hello, Mira.")])
    ok(await api.post(f"{CHAT}/tools/set_fact", json={"key": "name", "value": "Mira"}), 200)
    (hit,) = (await search(api, "name", kinds=["fact"]))["hits"]
    assert hit["sources"] == ["message:m2"]


async def test_results_are_limited_by_what_is_asked_for(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api, user_id="mira", characters=[KAI, {"name": "Rin"}])
    for n, name in enumerate(["Kai", "Rin", "Kai"], start=1):
        clock.step(3_600)
        said = {"id": f"m{n}", "role": "assistant", "name": name, "content": f"The ferry number {n}."}
        await append(api, [said])
    times = [hit["sent_at"] for hit in (await search(api, "ferry"))["hits"]]
    assert times == sorted(times, reverse=True)
    assert await found(api, "ferry", limit=1) == ["message:m3"]
    assert await found(api, "ferry", character="Rin") == ["message:m2"]
    assert await found(api, "ferry", after=times[-1]) == ["message:m3", "message:m2"]
    assert await found(api, "ferry", after=times[-1], before=times[0]) == ["message:m2"]


async def test_times_leave_out_texts_without_a_message(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, [message(1, LANTERN), message(2, "Good."), message(3, "Yes.")])
    written = await write(api, "The lantern is old.")
    await set_fact(api, "lantern", "green")
    learnt = (await learn("A lantern!", "m1")).memory_id
    memo = ok(await api.post(f"{CHAT}/memos", json={"text": "A lantern and a lamp."}), 201)["id"]
    since = {"after": "2000-01-01T00:00:00Z"}
    assert {f"memory:{written['id']}", f"memory:{learnt}"} < set(await found(api, "lantern"))
    timed = set(await found(api, "lantern lamp", **since))
    assert {"message:m1", f"memory:{learnt}", f"memo:{memo}"} <= timed
    assert not {one for one in timed if one.startswith("fact:")} | timed & {f"memory:{written['id']}"}
    await soft_delete(api, "m3")
    assert f"memo:{memo}" in await found(api, "lantern lamp")
    assert f"memo:{memo}" not in await found(api, "lantern lamp", **since)


async def test_a_scene_and_a_line_can_be_searched(api: httpx.AsyncClient) -> None:
    await begin(api, preset="scenes")
    await append(api, [message(n, f"The ferry, day {n}.") for n in range(1, 5)])
    ok(await api.put(f"{CHAT}/scenes/breaks/2"), 201)
    for after_seq in (2, 3):
        ok(await api.post(f"{CHAT}/memos", json={"text": f"A memo after {after_seq}.", "after_seq": after_seq}), 201)
    scene = ok(await api.get(f"{CHAT}/scenes"), 200)["items"][0]["id"]
    assert sorted(await found(api, "ferry", scene=scene, kinds=["message"])) == ["message:m1", "message:m2"]
    assert [hit["text"] for hit in (await search(api, "memo", scene=scene))["hits"]] == ["A memo after 2."]
    ok(await api.post(f"{CHAT}/checkpoints", json={"name": "before"}), 201)
    former = ok(await api.get(CHAT), 200)["line"]
    await edit(api, "m4", content="The lantern.")
    ok(await api.post(f"{CHAT}/checkpoints/before/restore"), 201)
    assert await found(api, "lantern") == []
    assert await found(api, "lantern", line=former) == ["message:m4"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"query": ""}, 422),
        ({"query": "x" * 1_001}, 422),
        ({"query": "a", "limit": 0}, 422),
        ({"query": "a", "limit": 101}, 422),
        ({"query": "a", "kinds": ["dream"]}, 422),
        ({"query": "a", "kinds": []}, 422),
        ({"query": "a", "line": "01900000-0000-7000-8000-000000000000"}, 404),
        ({"query": "a", "scene": "01900000-0000-7000-8000-000000000000"}, 404),
        ({"query": "a", "what": 1}, 422),
        ({"query": "?!"}, 200),
        ({"query": "who are you?"}, 200),
    ],
)
async def test_invalid_searches_are_refused(api: httpx.AsyncClient, body: Json, status: int) -> None:
    await begin(api)
    await append(api, [message(1, LANTERN)])
    assert (await api.post(f"{CHAT}/memories/search", json=body)).status_code == status


async def test_forms_of_a_word_are_found_in_its_language(api: httpx.AsyncClient) -> None:
    await put(api, language="en")
    await append(api, [message(1, "She paints the cat."), message(2, "Yes.")])
    assert await found(api, "cats") == ["message:m1"]
    assert await found(api, "painted") == ["message:m1"]


TYPOS = {"fery": "ferry", "kandle": "candle", "recieved": "received", "peir": "pier", "harborr": "harbor"}


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_a_misspelt_word_is_found(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, is_indexed: bool
) -> None:
    await begin(api, memos={"enabled": False})
    said = [f"Then I saw the {word}, at last." for word in TYPOS.values()]
    await append(api, [message(n, text) for n, text in enumerate([*said, *["We sail on."] * 64], start=1)])
    if is_indexed:
        await settle(dispatcher, clock)
    for n, (typed, meant) in enumerate(TYPOS.items(), start=1):
        (hit,) = (await search(api, f"the {typed}"))["hits"]
        assert (hit["id"], hit["snippet"]) == (f"m{n}", f"Then I saw the **{meant}**, at last.")


async def test_only_words_that_match_nothing_are_corrected(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, [message(1, "The lamb sleeps."), message(2, "The lamp burns."), message(3, "I received it.")])
    assert await found(api, "lamb") == ["message:m1"], "it is a word of the chat"
    assert await found(api, "camp lamb") == ["message:m1", "message:m2"], "what is meant counts less"
    assert await found(api, "cam") == [], "it is too short"
    await edit(api, "m2", content="It burns.")
    assert await found(api, "clamp") == []


@pytest.mark.parametrize("query", ["猫", "図書館", "りんご", "ТОМАС", "łódź"])
async def test_every_script_is_found(api: httpx.AsyncClient, query: str) -> None:
    await begin(api)
    await append(api, [message(1, "昨日、図書館で猫とりんごを見た。"), message(2, "Томас приплыл из Łódź.")])
    assert len(await found(api, query)) == 1


FOLDED = ["Fuß", "groß", "φίλος", "İyi", "ﬁnal", "Ａｎｎａ", "ｶﾒﾗ", "Łódź"]


@pytest.mark.parametrize("word", FOLDED)
async def test_a_word_is_found_as_it_was_typed(api: httpx.AsyncClient, word: str) -> None:
    await begin(api)
    await append(api, [message(1, f"Then {word} came."), message(2, "Yes.")])
    assert await found(api, word) == ["message:m1"]


async def test_short_names_and_numbers_are_found(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(
        api, [message(1, "Bo lives in room 7."), message(2, "About a boat, 17 feet."), message(3, "It is so.")]
    )
    assert await found(api, "Who is Bo?") == ["message:m1"]
    assert await found(api, "7") == ["message:m1"]
    assert await found(api, "I do so") == []


@pytest.mark.parametrize("under", [CHAT, USER])
async def test_facts_of_a_group_are_those_of_its_list(api: httpx.AsyncClient, under: str) -> None:
    settings = {"search": {"across_chats": True}}
    await put(api, user_id="mira", characters=[KAI, {"name": "Ines"}], settings=settings)
    for where in (USER, f"{USER}/characters/Kai"):
        await set_fact(api, "city", f"That of {where}.", under=where)
    await set_fact(api, "city of birth", "Porto", under=f"{USER}/characters/Ines")

    async def texts(**more: Any) -> set[str]:
        body = {"query": "city", "kinds": ["fact"], **more}
        hits = ok(await api.post(f"{under}/memories/search", json=body), 200)["hits"]
        return {hit["text"] for hit in hits}

    for query in ({}, {"character": "Kai"}, {"character": "Ines"}):
        listed = {f"{key}: {value}" for key, value in (await held(api, **query)).items()}
        assert await texts(**query) == listed
    await put(api, status=200, characters=[KAI, {"name": "Ines", "disabled": True}])
    of_scope = {f"city: That of {USER}."} if under == USER else set()
    assert await texts() == {f"city: That of {USER}/characters/Kai."} | of_scope


async def test_only_characters_of_the_chat_can_be_asked_for(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira", characters=[KAI, {"name": "Rin"}])
    said = {"role": "assistant", "content": "The ferry."}
    await append(api, [{"id": "m1", "name": "Rin", **said}, {"id": "m2", **said}])
    await set_fact(api, "ferry", "late", under=f"{USER}/characters/Rin")
    assert sorted(await found(api, "ferry", character="Rin"))[1:] == ["message:m1"]
    assert await found(api, "ferry", character="Kai") == []
    await search(api, "ferry", character="Nobody", status=422)


async def test_long_messages_are_searched_in_bounded_time(api: httpx.AsyncClient) -> None:
    await put(api, language="en")
    words = " ".join(f"w{n:x}ing" for n in range(9_000))
    for first in range(1, 31, 6):
        await append(api, [message(n, f"{n} ferry {words}") for n in range(first, first + 6)])
    assert len((await search(api, "ferry wanting", limit=100))["hits"]) == 30


async def test_a_user_is_searched_where_chats_permit_it(api: httpx.AsyncClient) -> None:
    for chat_id, permitted in (("a", True), ("b", True), ("c", False)):
        await begin(api, chat_id, search={"across_chats": permitted})
        await append(api, [message(1, LANTERN)], chat_id=chat_id)
    await put(api, "d", user_id="noa", settings={"search": {"across_chats": True}})
    await append(api, [message(1, LANTERN)], chat_id="d")
    hits = (await search(api, "lantern", under=USER))["hits"]
    assert sorted(hit["chat_id"] for hit in hits) == ["a", "b"]
    assert [hit["chat_id"] for hit in (await search(api, "lantern", under="/v1/users/noa"))["hits"]] == ["d"]
    assert (await search(api, "lantern", under="/v1/users/kim"))["hits"] == []


async def test_facts_and_memories_of_a_user_are_found_once(api: httpx.AsyncClient) -> None:
    written = await write(api, TOMAS, under=USER)
    await set_fact(api, "brother", "Tomas", under=USER)
    for chat_id in (None, "a", "b"):
        if chat_id is not None:
            await begin(api, chat_id, search={"across_chats": True})
        hits = (await search(api, "brother Tomas", under=USER))["hits"]
        assert sorted(hit["kind"] for hit in hits) == ["fact", "memory"]
        assert written["id"] in [hit["id"] for hit in hits]
        assert {hit["chat_id"] for hit in hits} <= {chat_id, "a"}


async def test_chats_of_one_language_are_searched_by_stems(api: httpx.AsyncClient) -> None:
    for chat_id in ("a", "b"):
        await begin(api, chat_id, search={"across_chats": True})
        await put(api, chat_id, status=200, language="en-GB" if chat_id == "a" else "en")
        await append(api, [message(1, "The ponies ran off.")], chat_id=chat_id)
    await begin(api, "other")
    hits = (await search(api, "pony", under=USER))["hits"]
    assert sorted(hit["chat_id"] for hit in hits) == ["a", "b"]
    assert hits[0]["snippet"] == "The **ponies** ran off."
    await put(api, "b", status=200, language="de")
    assert (await search(api, "pony", under=USER))["hits"] == [], "no stemmer knows both languages"


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [("nb", "nn", True), ("de", "de-AT", True), ("de", "fr", True), ("de", "en", False)],
)
async def test_chats_without_english_have_no_frequent_words(
    api: httpx.AsyncClient, first: str, second: str, is_found: bool
) -> None:
    for chat_id, language in (("a", first), ("b", second)):
        await begin(api, chat_id, search={"across_chats": True})
        await put(api, chat_id, status=200, language=language)
        await append(api, [message(1, "Er will fort.")], chat_id=chat_id)
    hits = (await search(api, "will", under=USER))["hits"]
    assert sorted(hit["chat_id"] for hit in hits) == (["a", "b"] if is_found else [])


async def test_messages_of_two_chats_are_no_neighbours(api: httpx.AsyncClient) -> None:
    for chat_id, first in (("a", "The ferry left."), ("b", "We sail on.")):
        await begin(api, chat_id, search={"across_chats": True})
        await append(api, [message(1, first), message(2, "The ferry came.")], chat_id=chat_id)
    by_place = {(hit["chat_id"], hit["id"]): hit for hit in (await search(api, "ferry", under=USER))["hits"]}
    assert by_place["a", "m2"]["parts"]["neighbours"] > 0
    assert by_place["b", "m2"]["parts"]["neighbours"] == 0


async def test_all_texts_are_searched_by_one_statement(api: httpx.AsyncClient, app: Any) -> None:
    await begin(api)
    await append(api, [message(1, LANTERN)])
    async with watched(app.state.database) as statements:
        await search(api, "lantern")
    texts = [text for text in statements.asked if LAYER_TABLES.search(text)]
    assert len(texts) == 1
