"""The segments of summary, diary and recap in a context over HTTP.

The tests write a layer's context cache directly instead of running its jobs.
"""

from typing import Any

import httpx
import orjson
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.tokens import count_tokens
from app.memos.window import Calendar, make_window
from tests.statements import watched
from tests.talk import FORMATS, WAITING_FOR_NOTHING, Json, append, context, get, ok, put, said, talk

CHAT: Json = {"characters": [{"name": "Kai"}], "user_persona": "Mira, a cartographer.", "system_prompt": "You are Kai."}
SUMMARY, DIARY, RECAP = "They met at sea.", "## 04/01 — memo entry\n\nShe stayed.", "The lamp went out."
HEADED = {"summary": "## Recent Conversation Summary", "recap": "## Running Recap", "diary": "## Diary"}
SUMMARY_TEXT = f"{HEADED['summary']}\n\n{SUMMARY}"
DIARY_TEXT = f"{HEADED['diary']}\n\n{DIARY}"
RECAP_TEXT = f"{HEADED['recap']}\n\n{RECAP}"


@pytest.fixture
def leave(database: Database, tenant: str) -> Any:
    """Write on the row of the chat `c` what layers leave there."""

    async def left(**shown: Any) -> None:
        async with database.raw() as connection:
            await connection.execute(
                "UPDATE chats SET context_cache = $2::text::jsonb WHERE chat_key = $1",
                chat_key(tenant, "c"),
                orjson.dumps(shown).decode(),
            )

    return left


def summary(**more: Any) -> Json:
    return {"version": 3, "text": SUMMARY, "tokens": count_tokens(SUMMARY_TEXT), "last_seq": 2, "stale": False} | more


def diary(*names: str) -> Json:
    written = {"text": DIARY_TEXT, "tokens": count_tokens(DIARY_TEXT), "sources": ["diary:7"]}
    return {"characters": {name: written | {"text": DIARY_TEXT.replace("She", name)} for name in names}}


def recap(**more: Any) -> Json:
    return {"version": 4, "text": RECAP, "tokens": count_tokens(RECAP_TEXT), "last_seq": 2, "stale": False} | more


def row(shown: Json, name: str) -> Json:
    """The segment of that name, or nothing."""
    return next((part for part in shown["segments"] if part["name"] == name), {})


def names(shown: Json) -> list[str]:
    return [part["name"] for part in shown["segments"]]


async def test_each_layer_has_its_position_sources_and_instruction(api: httpx.AsyncClient, leave: Any) -> None:
    await put(api, **CHAT)
    await append(api, talk(1, 5))
    bare = await context(api)
    await leave(summary=summary(), diary=diary("Kai"), scenes=recap())
    for fmt in FORMATS:
        shown = await context(api, format=fmt)
        assert names(shown) == ["recap", "system", "user", "instruction", "diary", "summary", "history", "newest"]
        told = [(row(shown, name)["text"], row(shown, name)["sources"]) for name in ("recap", "diary", "summary")]
        assert told == [
            (RECAP_TEXT, ["recap:4"]),
            (DIARY_TEXT.replace("She", "Kai"), ["diary:7"]),
            (SUMMARY_TEXT, ["summary:3"]),
        ]
        assert {part["name"]: part["scan"] for part in shown["segments"] if "scan" in part} == {"recap": False}
        assert shown["prefix_hash"] != bare["prefix_hash"]
        instruction = row(shown, "instruction")["text"]
        assert [name for name in HEADED if f'"{HEADED[name][3:]}" is ' in instruction] == list(HEADED)
    assert row(bare, "instruction") == {}, "nothing is remembered yet"


async def test_a_context_with_all_layers_is_one_statement(app: FastAPI, api: httpx.AsyncClient, leave: Any) -> None:
    await append(api, talk(1, 5))
    await leave(summary=summary(gaps=[[3, 4]], edges=[3]), scenes=recap(), diary=diary("", "Kai"))
    await context(api)
    async with watched(app.state.database) as statements:
        shown = await context(api, character="Kai")
    assert {"summary", "recap", "diary"} <= set(names(shown))
    assert (len(statements.asked), statements.frame) == (1, []), statements.asked


@pytest.mark.parametrize(
    ("injected", "places"),
    [
        ({}, ["recap", "system", "summary", "history", "newest"]),
        ({"position": 2, "role": "user"}, ["recap", "system", "summary", "history", "newest"]),
        ({"position": "in_prompt"}, ["system", "recap", "summary", "history", "newest"]),
        ({"position": "in_chat", "depth": 0}, ["system", "summary", "history", "newest", "recap"]),
        ({"position": 1, "depth": 1}, ["system", "summary", "history", "recap", "newest"]),
        ({"position": "none"}, ["system", "summary", "history", "newest"]),
    ],
)
async def test_the_recap_is_at_the_position_of_the_settings(
    api: httpx.AsyncClient, leave: Any, injected: Json, places: list[str]
) -> None:
    await put(api, system_prompt="You are Kai.", settings={"instruction": "", "scenes": {"recap": injected}})
    await append(api, talk(1, 5))
    await leave(summary=summary(), scenes=recap())
    for fmt in FORMATS:
        assert names(await context(api, format=fmt)) == places


async def test_a_recap_in_the_chat_has_its_depth_and_role(api: httpx.AsyncClient, leave: Any) -> None:
    injected = {"position": "in_chat", "depth": 2, "role": "user", "scan": True}
    await put(api, settings={"instruction": "", "scenes": {"recap": injected}})
    await append(api, talk(1, 5))
    await leave(scenes=recap())
    shown = await context(api, format="openai")
    assert shown["messages"][3] == {"role": "user", "content": RECAP_TEXT}
    assert [one["content"] for one in shown["messages"][4:]] == [said(n)["content"] for n in (4, 5)]
    found = row(shown, "recap")
    assert (found["role"], found["depth"], found["scan"], found["cacheable"]) == ("user", 2, True, False)
    before = shown["prefix_hash"]
    await leave(scenes=recap(version=5, text="Another.", tokens=count_tokens(f"{HEADED['recap']}\n\nAnother.")))
    assert (await context(api, format="openai"))["prefix_hash"] == before


@pytest.mark.parametrize(
    ("characters", "asked", "whose"),
    [
        ([{"name": "Kai"}], None, "Kai"),
        ([{"name": "Kai"}, {"name": "Ren", "disabled": True}], None, "Kai"),
        ([{"name": "Kai"}, {"name": "Ren", "disabled": True}], "Ren", "Ren"),
        ([{"name": "Kai"}, {"name": "Ren"}], None, None),
        ([{"name": "Kai"}, {"name": "Ren"}], "Ren", "Ren"),
        ([], None, ""),
        ([], "Ren", "Ren"),
    ],
)
async def test_a_prompt_contains_the_diary_of_its_character(
    api: httpx.AsyncClient, leave: Any, characters: list[Json], asked: str | None, whose: str | None
) -> None:
    await put(api, characters=characters)
    await append(api, talk(1, 3))
    await leave(diary=diary("Kai", "Ren", *([] if characters else [""])))
    options: Json = {"character": asked} if asked else {}
    found = row(await context(api, **options), "diary")
    assert found.get("text") == (None if whose is None else DIARY_TEXT.replace("She", whose))


async def test_an_unknown_character_is_rejected_with_a_helpful_text(api: httpx.AsyncClient) -> None:
    await put(api, characters=[{"name": "Kai"}, {"name": "Ren"}])
    asked = await context(api, 422, character="Kay")
    assert (asked["code"], asked["detail"]) == (
        "unknown_character",
        "The chat has no character 'Kay'; it has 'Kai', 'Ren'.",
    )
    assert asked["errors"] == [{"loc": ["query", "character"], "msg": "must be one of Kai, Ren"}]
    posted = ok(await api.post("/v1/chats/c/context", json={"character": "Kay"}), 422)
    assert posted["errors"][0]["loc"] == ["body", "character"]
    answer = await append(api, talk(1, 2), context={"character": "Kay"})
    assert (answer["created"], answer["context"], answer["context_problem"]["code"]) == (2, None, "unknown_character")


async def test_gaps_of_all_layers_are_listed_together(api: httpx.AsyncClient, leave: Any) -> None:
    await append(api, talk(1, 5))
    await leave(
        memos=make_window([], [], [(9, 16), (40, 48)], Calendar(None, "UTC")),
        summary=summary(gaps=[[41, 44], [60, 61]]),
        scenes={"gaps": [[17, 20], [3, 4]], "edges": [61]},
    )
    assert (await context(api))["memo_window"]["gaps"] == [[3, 4], [9, 20], [40, 48], [60, 61]]


@pytest.mark.parametrize(
    ("edges", "starts"),
    [
        ("folds", [1, 5, 11, 12, 13, 14, 15]),
        ("scenes", [1, 4, 8, 9, 10, 11, 12, 13, 14, 15]),
        ("batches", [1, 9, 10, 11, 12, 13, 14, 15]),  # memos are off, so every 8th message is an edge
        ("every_message", [*range(1, 16)]),
    ],
)
async def test_a_history_is_trimmed_at_its_layers_edges(
    api: httpx.AsyncClient, leave: Any, edges: str, starts: list[int]
) -> None:
    on = {"summary": {"enabled": edges == "folds"}, "scenes": {"enabled": edges == "scenes"}}
    await put(api, settings={**WAITING_FOR_NOTHING, "history": {"edges": edges}, **on})
    await append(api, talk(1, 15))
    await leave(summary={"edges": [5, 11]}, scenes={"edges": [4, 8]})
    whole = (await context(api))["tokens"]
    needed = (await context(api, 422, max_tokens=1))["needed_tokens"]
    found = [(await context(api, max_tokens=most))["history"]["anchor_seq"] for most in range(whole, needed - 1, -4)]
    assert list(dict.fromkeys(found)) == starts


async def test_a_limit_omits_the_diary_then_the_summary_and_the_recap(api: httpx.AsyncClient, leave: Any) -> None:
    await put(api, **CHAT)
    await append(api, talk(1, 5))
    for position in ("before_prompt", "in_prompt", "in_chat"):
        await put(api, status=200, settings={"scenes": {"recap": {"position": position}}})
        await leave(summary=summary(), diary=diary("Kai"), scenes=recap())
        needed = (await context(api, 422, max_tokens=1))["needed_tokens"]
        shown = await context(api, max_tokens=needed)
        assert [one["name"] for one in shown["omitted"]] == ["diary", "summary", "recap", "history"]
        assert [one["tokens"] for one in shown["omitted"][1:3]] == [
            count_tokens(text) for text in (SUMMARY_TEXT, RECAP_TEXT)
        ]
        assert shown["tokens"] == needed


async def test_the_report_names_the_version_that_covers_a_message(api: httpx.AsyncClient, leave: Any) -> None:
    await put(api, settings=WAITING_FOR_NOTHING)
    await append(api, talk(1, 33))
    await leave(summary=summary(last_seq=12))
    assert await _statuses(api) == [("summary", "summary:3")] * 12 + [("none", None)] * 4 + [("verbatim", None)] * 17


async def test_hidden_scenes_are_included_only_by_a_recap_in_use(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings={"preset": "scenes", "scenes": {"detect": False}})
    await append(api, talk(1, 36))
    for seq in (12, 24):
        ok(await api.put(f"/v1/chats/c/scenes/breaks/{seq}"), 201)
    for _ in range(4):
        clock.step(5)
        await dispatcher.drain()
    shown = await context(api)
    (by,) = row(shown, "recap")["sources"]
    assert await _statuses(api) == [("recap", by)] * 12 + [("verbatim", None)] * 24
    await put(api, status=200, settings={"scenes": {"recap": {"position": "none"}}})
    assert await _statuses(api) == [("hidden", None)] * 12 + [("verbatim", None)] * 24


async def test_texts_of_a_person_have_their_token_counts(api: httpx.AsyncClient) -> None:
    await put(api, **CHAT)
    await append(api, talk(1, 40))
    for path in ("summary", "recap"):
        ok(await api.put(f"/v1/chats/c/{path}", json={"text": f"The {path} is short."}), 200)
    await append(api, talk(41, 64))
    ok(await api.post("/v1/chats/c/diary", json={"content": "He came back."}), 201)
    shown = await context(api)
    for name, heading in HEADED.items():
        segment = row(shown, "diary_recent" if name == "diary" else name)
        assert segment["text"].startswith(heading)
        assert segment["tokens"] == count_tokens(segment["text"])


async def _statuses(api: httpx.AsyncClient) -> list[tuple[str, str | None]]:
    return [(one["status"], one["by"]) for one in (await get(api, "/inclusion", limit=500))["items"]]
