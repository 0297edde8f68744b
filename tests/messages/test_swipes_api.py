"""Swipes over HTTP: several texts of one message, of which only the selected one is used."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.tokens import count_tokens
from tests.book import book, due_rows
from tests.chats.rich import rows
from tests.memos.texts import KEY, WHISTLE
from tests.scripted_model import ScriptedModel
from tests.talk import Json, add_swipe, append, context, edit, get, ok, put, said, select_swipe, soft_delete, talk, walk

FIRST = said(2)["content"]


async def swipes(api: httpx.AsyncClient, message_id: str = "m2") -> tuple[list[str], int]:
    """All texts of a message, and which is selected."""
    message = await get(api, f"/messages/{message_id}")
    assert message["content"] == message["swipes"][message["selected_swipe"]]
    return message["swipes"], message["selected_swipe"]


async def test_a_new_swipe_is_added_last_and_selected(api: httpx.AsyncClient) -> None:
    await append(api, [said(1), said(2, name="Kai", metadata={"mood": "calm"}), said(3)])
    before = await get(api, "/messages/m2")
    assert (before["swipes"], before["selected_swipe"]) == ([FIRST], 0)
    second = await add_swipe(api, "m2", "Second.")
    assert second == before | {
        "content": "Second.",
        "tokens": count_tokens("Second."),
        "swipes": [FIRST, "Second."],
        "selected_swipe": 1,
    }
    third = await add_swipe(api, "m2", "Third.")
    assert (third["swipes"], third["selected_swipe"]) == ([FIRST, "Second.", "Third."], 2)
    assert await get(api, "/messages/m2") == third
    assert (await get(api, "/messages"))["items"][1] == third


async def test_any_text_can_be_selected_and_the_order_stays(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    texts = [FIRST, *(f"Text {n}." for n in range(1, 12))]
    for text in texts[1:]:
        await add_swipe(api, "m2", text)
    for index in (0, 11, 5, 4, 5, 10, 1):
        answer = await select_swipe(api, "m2", index)
        assert (answer["swipes"], answer["selected_swipe"], answer["content"]) == (texts, index, texts[index])
        assert answer["tokens"] == count_tokens(texts[index])
        assert await get(api, "/messages/m2") == answer
    added = await add_swipe(api, "m2", "The last.")
    assert (added["swipes"], added["selected_swipe"]) == ([*texts, "The last."], 12), "behind all, not the selected"


async def test_swiping_marks_nothing_as_edited_and_keeps_no_revision(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    assert not (await add_swipe(api, "m2", "Second."))["edited"]
    assert not (await select_swipe(api, "m2", 0))["edited"]
    assert (await get(api, "/messages/m2/revisions"))["items"] == []


async def test_selecting_what_is_selected_changes_nothing(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 8))
    added = await add_swipe(api, "m2", "Second.")
    before = await rows(database, tenant)
    assert await select_swipe(api, "m2", 1) == added
    assert await rows(database, tenant) == before


async def test_a_text_can_be_two_swipes_without_a_new_memo(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    await dispatcher.drain()
    answer = await add_swipe(api, "m2", FIRST)
    assert (answer["swipes"], answer["selected_swipe"]) == ([FIRST, FIRST], 1)
    assert await due_rows(database, tenant) == []


async def test_a_memo_is_made_from_the_selected_swipe(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    database: Database,
    tenant: str,
) -> None:
    await append(api, [said(1), said(2, content=KEY), *talk(3, 8)])
    clock.step(2)
    await dispatcher.drain()
    assert "brass key" in (await book(api))[0]["text"]
    await add_swipe(api, "m2", WHISTLE)
    assert [row["at_seq"] for row in await due_rows(database, tenant)] == [1]
    clock.step(2)
    await dispatcher.drain()
    assert "brass key" not in str((await book(api), model.requests[-1]))
    assert "silver whistle" in (await book(api))[0]["text"]
    await select_swipe(api, "m2", 0)
    clock.step(2)
    await dispatcher.drain()
    assert "silver whistle" not in str((await book(api), model.requests[-1]))
    assert "brass key" in (await book(api))[0]["text"]


async def test_unselected_swipes_are_only_in_the_list_of_swipes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings={"history": {"keep_messages": 1, "grow_messages": 0}})
    await append(api, [*talk(1, 3), said(4, content=KEY), *talk(5, 8)])
    await append(api, [said(9), said(10, content=KEY)])
    for name in ("m4", "m10"):
        await edit(api, name, content=f"{KEY} Still.")
        await add_swipe(api, name, WHISTLE)
    clock.step(2)
    await dispatcher.drain()
    await append(api, [said(11)])
    answers = [
        *[await context(api, format=name) for name in ("segments", "openai", "anthropic", "text")],
        await book(api),
        await get(api, ""),
        (await get(api, "/inclusion"))["items"],
        *[one | {"swipes": []} for one in (await get(api, "/messages"))["items"]],
        (await append(api, [said(10, content=KEY)], status=200, context={}))["messages"],
        model.requests,
    ]
    assert "brass key" not in str(answers)
    assert "silver whistle" in (await book(api))[0]["text"]
    (revision,) = (await get(api, "/messages/m4/revisions"))["items"]
    assert revision["content"] == KEY, "it was edited, so it is told as what was said before"
    assert (await swipes(api, "m4"))[0] == [f"{KEY} Still.", WHISTLE]


async def test_each_format_says_the_text_that_is_selected_at_once(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    for name in ("segments", "openai", "anthropic", "text"):
        before = await context(api, format=name)
        assert KEY in str((await add_swipe(api, "m2", KEY), await context(api, format=name))[1])
        await select_swipe(api, "m2", 0)
        assert await context(api, format=name) == before


async def test_an_edit_changes_the_selected_text_alone(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    await add_swipe(api, "m2", "Second.")
    await add_swipe(api, "m2", "Third.")
    await select_swipe(api, "m2", 1)
    edited = await edit(api, "m2", content="Second, edited.")
    assert (edited["swipes"], edited["selected_swipe"], edited["edited"]) == (
        [FIRST, "Second, edited.", "Third."],
        1,
        True,
    )
    await select_swipe(api, "m2", 2)
    await edit(api, "m2", content="Third, edited.")
    await select_swipe(api, "m2", 0)
    await select_swipe(api, "m2", 1)
    assert await swipes(api) == ([FIRST, "Second, edited.", "Third, edited."], 1)
    revisions = (await get(api, "/messages/m2/revisions"))["items"]
    assert [(one["number"], one["swipe"], one["content"]) for one in revisions] == [
        (2, 2, "Third."),
        (1, 1, "Second."),
    ]


@pytest.mark.parametrize("last", ["swipe", "select", "edit", "delete"])
async def test_a_retried_append_succeeds_after_changes_of_the_message(
    api: httpx.AsyncClient, database: Database, tenant: str, last: str
) -> None:
    await append(api, talk(1, 8))
    await add_swipe(api, "m2", "Second.")
    if last == "select":
        await select_swipe(api, "m2", 0)
    elif last == "edit":
        await edit(api, "m2", content="Second, edited.")
    elif last == "delete":
        await soft_delete(api, "m2")
    before = await rows(database, tenant)
    again = await append(api, talk(1, 8), status=200)
    assert (again["created"], [one["seq"] for one in again["messages"]]) == (0, list(range(1, 9)))
    for text in ("Second.", "Second, edited."):
        assert (await append(api, [said(2, content=text)], status=409))["code"] == "message_id_taken"
    assert await rows(database, tenant) == before
    now = {"swipe": ["Second."], "select": [FIRST], "edit": ["Second, edited."], "delete": []}
    pages = await walk(api, "/v1/chats/c/messages")
    assert [one["content"] for page in pages for one in page if one["id"] == "m2"] == now[last]


async def test_a_chat_counts_the_selected_text(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    before = (await get(api, ""))["counters"]
    grown = count_tokens(KEY) - count_tokens(FIRST)
    await add_swipe(api, "m2", KEY)
    assert (await get(api, ""))["counters"] == before | {"tokens": before["tokens"] + grown}
    await select_swipe(api, "m2", 0)
    assert (await get(api, ""))["counters"] == before


async def test_a_blank_text_is_not_sent_while_it_is_selected(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    await add_swipe(api, "m2", " ")
    assert (await context(api))["history"]["messages"] == 2
    await select_swipe(api, "m2", 0)
    assert (await context(api))["history"]["messages"] == 3


async def test_marks_belong_to_the_message_and_not_to_a_swipe(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    await edit(api, "m2", pinned=True, excluded=True, hidden=True)
    added = await add_swipe(api, "m2", "Second.")
    assert (added["pinned"], added["excluded"], added["hidden_by"]) == (True, True, "user")
    assert (await context(api))["history"]["messages"] == 2


@pytest.mark.parametrize("role", ["user", "system", "tool", "narrator"])
async def test_messages_of_any_role_can_have_swipes(api: httpx.AsyncClient, role: str) -> None:
    await append(api, [said(1), said(2, role=role)])
    await add_swipe(api, "m2", "Second.")
    assert await swipes(api) == ([FIRST, "Second."], 1)


# --- refused ---


@pytest.mark.parametrize("index", [2, 3, 2**31 - 1])
async def test_an_unknown_swipe_is_404_and_lists_the_existing_ones(
    api: httpx.AsyncClient, database: Database, tenant: str, index: int
) -> None:
    await append(api, talk(1, 8))
    await add_swipe(api, "m2", "Second.")
    before = await rows(database, tenant)
    problem = await select_swipe(api, "m2", index, 404)
    assert problem["code"] == "swipe_not_found"
    assert problem["errors"] == [{"loc": ["body", "index"], "msg": "must be at most 1"}]
    assert await rows(database, tenant) == before


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/swipes", {}, "content"),
        ("POST", "/swipes", {"content": ""}, "content"),
        ("POST", "/swipes", {"content": None}, "content"),
        ("POST", "/swipes", {"content": 5}, "content"),
        ("POST", "/swipes", {"content": "a\0b"}, "content"),
        ("POST", "/swipes", {"content": "x" * 100_001}, "content"),
        ("POST", "/swipes", {"content": "x", "index": 1}, "index"),
        ("PUT", "/swipes/selected", {}, "index"),
        ("PUT", "/swipes/selected", {"index": -1}, "index"),
        ("PUT", "/swipes/selected", {"index": 2**31}, "index"),
        ("PUT", "/swipes/selected", {"index": 0.5}, "index"),
        ("PUT", "/swipes/selected", {"index": None}, "index"),
        ("PUT", "/swipes/selected", {"index": 0, "content": "x"}, "content"),
    ],
    ids=lambda given: str(given)[:30],
)
async def test_an_invalid_swipe_is_rejected_by_field_without_effect(
    api: httpx.AsyncClient, database: Database, tenant: str, method: str, path: str, body: Json, field: str
) -> None:
    await append(api, talk(1, 8))
    await add_swipe(api, "m2", "Second.")
    before = await rows(database, tenant)
    problem = ok(await api.request(method, f"/v1/chats/c/messages/m2{path}", json=body), 422)
    assert problem["errors"][0]["loc"] == ["body", field]
    assert await rows(database, tenant) == before
