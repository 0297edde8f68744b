"""Recall: search results in the context, after the history."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.kit.clock import SteppedClock
from app.kit.settings import Settings
from app.main import create_app
from app.search.choice import HEADING
from tests.conftest import client_of
from tests.facts.asking import USER, begin
from tests.memories.asking import Learner, write
from tests.search.finding import LANTERN, TOMAS, begin_long, message
from tests.statements import watched
from tests.talk import FORMATS, Json, add_swipe, append, context, edit, put, soft_delete


def recalled(answer: Json) -> list[str]:
    """The lines of the segment, without the heading."""
    texts = [segment["text"] for segment in answer["segments"] if segment["name"] == "recalled"]
    assert all(text.startswith(f"{HEADING}\n\n") for text in texts)
    return [line for text in texts for line in text.splitlines()[2:]]


async def test_an_old_message_and_a_memory_are_recalled(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin_long(api)
    memory = await learn("Green glass calms Mira.", "m3", category="preference", importance=0.6)
    await append(api, [message(7, "Do you see the green lantern?")])
    answer = await context(api)
    assert recalled(answer) == [f"- [message] User: {LANTERN}", "- [preference] Green glass calms Mira."]
    first, second = answer["recalled"]
    assert (first["kind"], first["id"]) == ("message", "m1")
    assert (second["kind"], second["id"]) == ("memory", str(memory.memory_id))
    assert set(first) == {"kind", "id", "score", "parts"}
    assert first["score"] == pytest.approx(sum(first["parts"].values()))
    assert second["parts"]["importance"] > first["parts"]["importance"] == 0
    (segment,) = [one for one in answer["segments"] if one["name"] == "recalled"]
    assert segment["cacheable"] is False
    assert set(segment["sources"]) == {"message:m1", f"memory:{memory.memory_id}"}
    assert [one["name"] for one in answer["segments"]][-2:] == ["recalled", "newest"]


async def test_a_memory_of_the_block_facts_is_not_recalled(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin_long(api)
    await learn("Green glass calms Mira.", "m3", category="preference", importance=0.7)
    await append(api, [message(7, "Do you see the green lantern?")])
    assert recalled(await context(api)) == [f"- [message] User: {LANTERN}"]


async def test_a_memory_of_what_the_history_says_is_not_recalled(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin_long(api)
    await append(api, [message(7, "Green glass calms me."), message(8, "I know.")])
    await learn("Mira finds calm in green glass.", "m7", importance=0.6)
    assert recalled(await context(api, query="calm green glass")) == [f"- [message] User: {LANTERN}"]
    await append(api, [message(9, "Good night."), message(10, "Good night.")])
    assert "- [memory] Mira finds calm in green glass." in recalled(await context(api, query="calm green glass"))


@pytest.mark.parametrize(("language", "is_found"), [("en-GB", True), (None, False)])
async def test_forms_of_a_word_are_recalled_by_their_stem(
    api: httpx.AsyncClient, language: str | None, is_found: bool
) -> None:
    await begin_long(api, "The ponies ran off.")
    await write(api, "Ren saw ponies.", importance=0.1)
    if language:
        await put(api, status=200, language=language)
    for _ in range(2):  # the second time, the memory is remembered
        found = " ".join(recalled(await context(api, query="pony")))
        assert ("ponies ran" in found, "Ren saw" in found) == (is_found, is_found)


async def test_recall_takes_no_word_for_another(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    assert recalled(await context(api, query="pier"))
    assert recalled(await context(api, query="peir")) == []
    await append(api, [message(7, "Do you know Piers?")])
    assert recalled(await context(api)) == []


async def test_a_name_that_is_a_frequent_word_is_recalled(api: httpx.AsyncClient) -> None:
    await begin_long(api, "I met Will in the yard.")
    await write(api, "May knows Will.", importance=0.1)
    for _ in range(2):  # the second time, the memory is remembered
        found = " ".join(recalled(await context(api, query="And where is Will?")))
        assert ("met Will" in found, "May knows" in found) == (True, True)
    assert recalled(await context(api, query="Will you?")) == []


@pytest.mark.parametrize("said", ["And what of Bo?", "Is it 42?"])
async def test_a_short_name_or_number_is_recalled(api: httpx.AsyncClient, said: str) -> None:
    await begin_long(api, "Bo lives in room 42.")
    assert recalled(await context(api, query=said)) == ["- [message] User: Bo lives in room 42."]
    await append(api, [message(7, said)])
    assert "- [message] User: Bo lives in room 42." in recalled(await context(api)), "beside “We sail on”"


async def test_recall_is_off_unless_it_is_asked_for(api: httpx.AsyncClient, app: FastAPI) -> None:
    await begin_long(api)
    await append(api, [message(7, "Do you see the green lantern?")])
    assert recalled(await context(api)) != []
    for mode in ("off", "tool"):
        await put(api, status=200, settings={"recall": {"mode": mode}})
        async with watched(app.state.database) as statements:
            answer = await context(api)
        assert (recalled(answer), answer["recalled"], len(statements.all)) == ([], [], 1)
    async with watched(app.state.database) as statements:
        assert recalled(await context(api, recall="auto")) != []
    assert len(statements.all) == 2
    await put(api, status=200, settings={"recall": {"mode": "auto"}})
    assert recalled(await context(api, recall="off")) == []


async def test_recall_changes_no_text_of_other_segments(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    await append(api, [message(7, "Do you see the green lantern?")])
    for style in FORMATS:
        on, off = await context(api, format=style), await context(api, format=style, recall="off")
        assert on["prefix_hash"] == off["prefix_hash"]
        assert LANTERN in str([on.get("messages"), on.get("text"), on["segments"]])
        others = [one for one in on["segments"] if one["name"] != "recalled"]
        assert [one["text"] for one in others] == [one["text"] for one in off["segments"]]
        assert on["breakpoints"][:-1] == off["breakpoints"][: len(on["breakpoints"]) - 1]


async def test_the_query_is_given_or_that_of_the_newest_messages(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    await write(api, TOMAS)
    assert not {f"- [message] User: {LANTERN}", f"- [memory] {TOMAS}"} & set(recalled(await context(api)))
    assert recalled(await context(api, query="Where is Tomas?")) == [f"- [memory] {TOMAS}"]
    assert recalled(await context(api, draft="The green lantern!")) == [f"- [message] User: {LANTERN}"]
    await append(api, [message(7, "Is it the green one?"), message(8, "Why not?")])
    assert recalled(await context(api)) == [f"- [message] User: {LANTERN}"]


async def test_nothing_is_recalled_that_is_there_already(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    await edit(api, "m1", pinned=True)
    await write(api, "We sail on, day 6.")
    assert recalled(await context(api, query="green lantern, sail")) != []
    assert not [line for line in recalled(await context(api, query="green lantern, sail")) if LANTERN in line]
    assert not [line for line in recalled(await context(api, query="sail day 6")) if "[memory]" in line]


async def test_results_fit_their_budget_and_that_of_the_context(api: httpx.AsyncClient) -> None:
    await begin(api, memos={"enabled": False}, recall={"mode": "auto", "tokens": 60})
    for n in range(30):
        await write(api, f"A lantern hangs at house number {n}.")
    await append(api, [message(1, "The lantern?")])

    async def tokens(**options: Any) -> int:
        answer = await context(api, **options)
        assert answer["tokens"] <= answer["max_tokens"]
        return sum(one["tokens"] for one in answer["segments"] if one["name"] == "recalled")

    assert 40 < await tokens() <= 60
    assert 150 < await tokens(recall_tokens=200) <= 200
    assert await tokens(recall_tokens=5) == 0
    floor = (await context(api, recall="off"))["tokens"]
    assert 30 < await tokens(recall_tokens=200, max_tokens=floor + 80) <= 80


@pytest.mark.parametrize("options", [{}, {"query": "lantern"}])
async def test_recall_gets_the_room_that_is_left(api: httpx.AsyncClient, options: Json) -> None:
    await begin(api, memos={"enabled": False}, recall={"mode": "auto", "tokens": 400})
    for n in range(30):
        await write(api, f"A lantern hangs at house number {n}{', beside the well of the old mill' * (n % 3)}.")
    await append(api, [message(1, "The lantern?")])
    floor = (await context(api, recall="off"))["tokens"]
    larger = recalled(whole := await context(api, **options))
    assert whole["omitted"] == []
    for room in range(395, 0, -15):
        answer = await context(api, max_tokens=floor + room, **options)
        assert set(recalled(answer)) <= set(larger), room
        larger = recalled(answer)
        left = room - (answer["tokens"] - floor)
        assert 0 <= left < 45, "one more result would not have fitted"
        missing = whole["tokens"] - answer["tokens"]
        omitted = [(one["name"], one["why"]) for one in answer["omitted"]]
        assert omitted == ([("recalled", "max_tokens")] if missing else [])


async def test_with_a_query_memos_are_trimmed_first(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "auto"})
    await append(api, [message(1, "The lantern?"), message(2, "Yes."), message(3, "The lantern!")])
    await api.post("/v1/chats/c/memos", json={"text": "They met at sea. " * 20, "after_seq": 0})
    await write(api, LANTERN)
    whole = await context(api, query="lantern")
    assert recalled(whole) != []
    tight = whole["tokens"] - 1
    assert [one["name"] for one in (await context(api, max_tokens=tight))["omitted"]] == ["recalled"]
    asked = await context(api, query="lantern", max_tokens=tight)
    assert (recalled(asked) != [], [one["name"] for one in asked["omitted"]]) == (True, ["memos 1–5"])


async def test_no_memory_is_recalled_in_three_turns_running(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "auto"})
    await write(api, LANTERN)
    turns = []
    for n in range(1, 14, 2):
        await append(api, [message(n, "The lantern!")])
        first, second = recalled(await context(api)), recalled(await context(api))
        assert first == second, "reading twice changes nothing"
        turns.append(first != [])
        await append(api, [message(n + 1, "Yes.")])
    assert turns == [True, True, False, True, True, False, True]


SISTER = "I have a sister, Lena. She mends boats in Hamburg."
QUOTED = "User: “I have a sister, Lena.”"


async def test_a_memory_and_the_message_it_quotes_come_as_one(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin_long(api, f"Well, hello! {SISTER}")
    await learn(QUOTED, "m1")
    assert len(recalled(await context(api, query="sister Lena"))) == 1
    assert len(recalled(await context(api, query="Lena mends boats in Hamburg, hello"))) == 1


@pytest.mark.parametrize("queries", [["sister Lena"], ["sister Lena", "Lena mends boats in Hamburg, hello"]])
async def test_a_memory_pauses_with_the_message_it_quotes(
    api: httpx.AsyncClient, learn: Learner, queries: list[str]
) -> None:
    await begin_long(api, f"Well, hello! {SISTER}")
    await learn(QUOTED, "m1")
    turns = []
    for turn, n in enumerate(range(7, 19, 2)):
        await append(api, [message(n, f"Tell me more, number {n}.")])
        query = queries[turn % len(queries)]
        first, second = recalled(await context(api, query=query)), recalled(await context(api, query=query))
        assert first == second, "reading twice changes nothing"
        turns.append(len([line for line in first if "Lena" in line]))
        await append(api, [message(n + 1, "Yes.")])
    assert turns == [1, 1, 0, 1, 1, 0]


async def test_lines_remember_their_own_turns(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "auto"})
    await write(api, LANTERN)
    await append(api, [message(1, "The lantern!"), message(2, "Yes.")])
    assert recalled(await context(api)) != []
    await append(api, [message(3, "The lantern!"), message(4, "Yes.")])
    assert recalled(await context(api)) != []
    await append(api, [message(5, "The lantern!")])
    assert recalled(await context(api)) == []
    forked = await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 5})
    assert forked.status_code == 201, forked.text
    answer = (await api.get("/v1/chats/d/context")).json()
    assert recalled(answer) != []


async def test_turns_are_remembered_without_redis(fresh_database_url: str, clock: SteppedClock) -> None:
    away = "redis://127.0.0.1:1/0"
    app = create_app(Settings(database_url=fresh_database_url, redis_url=away, _env_file=None), clock=clock)
    async with client_of(app, None) as api:
        await test_no_memory_is_recalled_in_three_turns_running(api)
    await app.state.recall_memory.close()
    await app.state.notifier.close()
    await app.state.database.close()


async def test_an_append_returns_what_it_recalls(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    answer = await append(api, [message(7, "The green lantern!")], context={})
    assert recalled(answer["context"]) == [f"- [message] User: {LANTERN}"]


async def test_before_a_message_later_words_are_not_recalled(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin_long(api, "Hello.")
    await append(api, [message(7, "The lantern!"), message(8, "Which one?"), message(9, LANTERN), message(10, "Ah.")])
    await learn("The lantern is made of green glass.", "m9")
    await put(api, status=200, settings={"history": {"keep_messages": 8}})
    assert recalled(await context(api, query="lantern")) != []
    assert recalled(await context(api, query="lantern", before="m9")) == ["- [message] User: The lantern!"]


async def test_edited_and_deleted_texts_are_not_recalled(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin_long(api)
    await learn("Green glass calms Mira.", "m1")
    assert len(recalled(await context(api, query="green"))) == 2
    await edit(api, "m1", content="The pier is of oak.")
    assert recalled(await context(api, query="green")) == []
    await add_swipe(api, "m2", "A green swan!")
    assert len(recalled(await context(api, query="green"))) == 1
    await soft_delete(api, "m2")
    assert recalled(await context(api, query="green")) == []


async def test_a_character_recalls_its_own_diary_alone(api: httpx.AsyncClient) -> None:
    await put(
        api,
        characters=[{"name": "Kai"}, {"name": "Quill"}],
        settings={"diary": {"enabled": True, "position": "none"}, "recall": {"mode": "auto"}},
    )
    for name in ("Kai", "Quill"):
        answer = await api.post("/v1/chats/c/diary", json={"content": f"{name} keeps a lantern.", "character": name})
        assert answer.status_code == 201, answer.text
    await append(api, [message(1, "The lantern?")])
    assert [line for line in recalled(await context(api, character="Kai")) if "Quill" in line] == []
    assert recalled(await context(api)) == []


async def test_wide_memories_are_recalled_by_the_users_chats(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "auto"})
    await put(api, "other", user_id="ren", settings={"recall": {"mode": "auto"}})
    await write(api, LANTERN, under=USER)
    for chat_id in ("c", "other"):
        await append(api, [message(1, "The lantern?")], chat_id)
    assert recalled(await context(api)) == [f"- [memory] {LANTERN}"]
    assert recalled((await api.get("/v1/chats/other/context")).json()) == []
