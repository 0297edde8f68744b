"""The memo book over HTTP: list, write, edit, pin, delete, regenerate."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import PATIENCE_S
from tests.book import ask, book, change, due_rows, shown, statuses
from tests.conftest import NOON
from tests.scripted_model import ScriptedModel, refuses
from tests.slowness import SLOWNESS
from tests.talk import Json, append, context, get, put, talk, walk

MEMORY = "They once drove to the sea at night.\nIt rained."
AT_ONCE = {"history": {"keep_messages": 1, "grow_messages": 0}}


async def write(api: httpx.AsyncClient, text: str = MEMORY, **memo: Any) -> Json:
    return await ask(api, "POST", "", 201, {"text": text, **memo})


async def made(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, batches: int = 1) -> list[Json]:
    """The memos of so many batches, all of them before the anchor."""
    await put(api, settings=AT_ONCE)
    await append(api, talk(1, 8 * batches))
    clock.step(2)
    await dispatcher.drain()
    await append(api, talk(8 * batches + 1, 8 * batches + 1))
    return await book(api)


# --- reading ---


async def test_the_book_is_in_story_order_page_by_page(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await made(api, dispatcher, clock, 3)
    await write(api, after_seq=8)
    await write(api, after_seq=8)
    await write(api, after_seq=0)
    pages = await walk(api, "/v1/chats/c/memos", limit=2)
    assert [len(page) for page in pages] == [2, 2, 2]
    listed = [memo for page in pages for memo in page]
    assert [(memo["number"], memo["first_seq"], memo["after_seq"]) for memo in listed] == [
        (6, None, 0),
        (1, 1, None),
        (4, None, 8),
        (5, None, 8),
        (2, 9, None),
        (3, 17, None),
    ]
    assert listed == await book(api)


async def test_from_a_memo_to_its_first_message_and_back_is_one_step(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    _, memo = await made(api, dispatcher, clock, 2)
    message = await get(api, f"/messages/{memo['first_message_id']}")
    assert message["seq"] == memo["first_seq"] == 9
    assert message["memo_id"] == memo["id"]
    assert await get(api, f"/memos/{memo['id']}") == memo


async def test_a_book_without_memos_is_empty_and_an_unknown_one_404(api: httpx.AsyncClient) -> None:
    await get(api, "/memos", 404)
    await put(api)
    assert await get(api, "/memos") == {"items": [], "next_cursor": None}
    await get(api, f"/memos/{uuid4()}", 404)
    await get(api, "/memos/first", 422)
    await get(api, "/memos", 404, line=str(uuid4()))
    await get(api, "/memos", 422, limit=501)
    await get(api, "/memos", 422, cursor="rubbish")


async def test_a_book_is_its_tenants_alone(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    (memo,) = await made(api, dispatcher, clock)
    async with database.unit_of_work() as db_session:
        key = await create_key(db_session, f"{tenant}-else", ["read", "write"], NOON)
    api.headers["Authorization"] = f"Bearer {key.text}"
    await get(api, "/memos", 404)
    await put(api)
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"pinned": True}),
        ("DELETE", "", None),
        ("POST", "/regenerate", {}),
    ):
        await ask(api, method, f"/{memo['id']}{path}", 404, body)


# --- a person's own ---


async def test_a_written_memory_is_shown_at_once_and_covers_nothing(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 5))
    memo = await write(api)
    assert (memo["first_seq"], memo["last_seq"], memo["first_message_id"]) == (None, None, None)
    assert (memo["after_seq"], memo["number"], memo["status"], memo["origin"]) == (5, 1, "ready", "person")
    assert (memo["in_prompt"], memo["edited"], memo["stale"], memo["pinned"]) == (True, False, False, False)
    assert (memo["model"], memo["prompt_version"], memo["attempts"], memo["error"]) == (None, None, 0, None)
    assert memo["text"] == MEMORY
    assert [highlight["text"] for highlight in memo["highlights"]] == MEMORY.split("\n")
    assert (await context(api))["memo_window"]["memos"] == 1
    assert "the sea at night" in next(s["text"] for s in (await context(api))["segments"] if s["name"] == "memos")


async def test_a_memory_by_a_person_has_the_given_position(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 5))
    assert (await write(api, after_seq=2))["after_seq"] == 2
    assert (await write(api, after_seq=0))["after_seq"] == 0
    refused = await ask(api, "POST", "", 422, {"text": MEMORY, "after_seq": 6})
    assert refused["errors"][0]["loc"] == ["body", "after_seq"]
    assert [memo["after_seq"] for memo in await book(api)] == [0, 2]


async def test_a_memory_by_a_person_counts_in_the_window(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await made(api, dispatcher, clock, 15)
    assert await shown(api) == list(range(1, 16))
    await write(api)
    assert await shown(api) == list(range(2, 17))


async def test_an_empty_chat_can_be_given_a_memory(api: httpx.AsyncClient) -> None:
    await put(api)
    assert (await write(api))["after_seq"] == 0
    assert await shown(api) == [1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \n\t"}, "text"),
        ({"text": "x" * 20_001}, "text"),
        ({"text": "nul \x00"}, "text"),
        ({"text": 5}, "text"),
        ({"text": "x", "after_seq": -1}, "after_seq"),
        ({"text": "x", "after_seq": 2**40}, "after_seq"),
        ({"text": "x", "after_seq": 0.5}, "after_seq"),
        ({"text": "x", "pinned": True}, "pinned"),
    ],
)
async def test_a_malformed_memory_is_refused_by_the_name_of_its_field(
    api: httpx.AsyncClient, body: Json, field: str
) -> None:
    await put(api)
    assert (await ask(api, "POST", "", 422, body))["errors"][0]["loc"] == ["body", field]


async def test_a_memory_is_kept_in_the_words_it_was_written_in(api: httpx.AsyncClient) -> None:
    await put(api)
    for text in ("ミラは鍵を持っている。🗝", "שלום, קאי", "x" * 20_000, "  【Highlight 1】: not a label  "):
        assert (await write(api, text))["text"] == text


# --- edit, pin, delete ---


async def test_an_edit_replaces_the_text_at_once_in_book_and_prompt(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    (memo,) = await made(api, dispatcher, clock)
    edited = await ask(api, "PATCH", f"/{memo['id']}", 200, {"text": "Kai kept the key."})
    assert (edited["text"], edited["edited"], edited["origin"]) == ("Kai kept the key.", True, "person")
    assert edited["highlights"] == [{"category": None, "text": "Kai kept the key."}]
    assert [edited] == await book(api)
    segment = next(s for s in (await context(api))["segments"] if s["name"] == "memos")
    assert "Kai kept the key." in segment["text"]
    assert f"memo:{memo['id']}" in segment["sources"]


async def test_an_edit_makes_a_pending_memo_ready_and_its_work_undone(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 8))
    (memo,) = await book(api)
    edited = await ask(api, "PATCH", f"/{memo['id']}", 200, {"text": "Kai kept the key."})
    assert (edited["status"], edited["edited"], edited["in_prompt"]) == ("ready", False, False)
    assert await due_rows(database, tenant) == []


async def test_an_edit_makes_a_stale_memo_fresh(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    (memo,) = await made(api, dispatcher, clock)
    await change(database, tenant, "memos", "current_hash = substr(sha256('changed'), 1, 16)")
    assert (await book(api))[0]["stale"]
    assert not (await ask(api, "PATCH", f"/{memo['id']}", 200, {"text": "Kai kept the key."}))["stale"]
    await change(database, tenant, "memos", "current_hash = substr(sha256('changed again'), 1, 16)")
    (memo,) = await book(api)
    assert (memo["stale"], memo["in_prompt"]) == (True, True)


async def test_pinned_memos_are_shown_beside_the_window(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await made(api, dispatcher, clock, 17)
    assert await shown(api) == list(range(3, 18))
    oldest, second, *_ = await book(api)
    assert (await ask(api, "PATCH", f"/{oldest['id']}", 200, {"pinned": True}))["in_prompt"]
    assert await shown(api) == [1, *range(3, 18)]
    await ask(api, "PATCH", f"/{(await book(api))[-1]['id']}", 200, {"pinned": True})
    assert await shown(api) == list(range(1, 18))
    unpinned = await ask(api, "PATCH", f"/{oldest['id']}", 200, {"pinned": False})
    assert (unpinned["pinned"], unpinned["in_prompt"], unpinned["edited"]) == (False, False, False)
    assert second["number"] in await shown(api)


async def test_a_deleted_memo_is_gone_and_never_made_again(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    first, _ = await made(api, dispatcher, clock, 2)
    calls = len(model.calls)
    await ask(api, "DELETE", f"/{first['id']}", 204)
    assert [memo["number"] for memo in await book(api)] == await shown(api) == [2]
    for method, body in (("GET", None), ("PATCH", {"pinned": True}), ("DELETE", None)):
        await ask(api, method, f"/{first['id']}", 404, body)
    clock.step(86_400)
    await append(api, talk(18, 24))
    clock.step(2)
    await dispatcher.drain()
    assert [memo["number"] for memo in await book(api)] == [2, 3]
    assert len(model.calls) == calls + 1
    assert len(await due_rows(database, tenant)) == 0


async def test_a_pending_memo_that_is_deleted_is_not_made(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    await ask(api, "DELETE", f"/{(await book(api))[0]['id']}", 204)
    clock.step(2)
    assert await dispatcher.drain() == 0
    assert model.calls == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": " "}, "text"),
        ({"text": None, "pinned": None}, "text"),
        ({"pinned": "perhaps"}, "pinned"),
        ({"status": "ready"}, "status"),
    ],
)
async def test_a_malformed_change_is_refused_by_the_name_of_its_field(
    api: httpx.AsyncClient, body: Json, field: str
) -> None:
    await put(api)
    memo = await write(api)
    assert (await ask(api, "PATCH", f"/{memo['id']}", 422, body))["errors"][0]["loc"] == ["body", field]
    assert await book(api) == [memo]


# --- regenerate ---


async def test_a_memo_is_made_again_with_a_wish_that_holds_this_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    (memo,) = await made(api, dispatcher, clock)
    model.script("【Highlight 1】: Kai gave Mira the brass key.")
    asked = await ask(api, "POST", f"/{memo['id']}/regenerate", 202, {"instruction": "Mention the brass key."})
    assert (asked["status"], asked["text"], asked["in_prompt"]) == ("ready", memo["text"], True)
    assert await dispatcher.drain() == 1, "a wish waits for no settle time"
    assert "Mention the brass key." in str(model.requests[-1])
    assert [memo["text"] for memo in await book(api)] == ["【Highlight 1】: Kai gave Mira the brass key."]
    await ask(api, "POST", f"/{memo['id']}/regenerate", 202)
    await dispatcher.drain()
    assert "Mention the brass key." not in str(model.requests[-1])


async def test_a_failed_memo_is_retried_with_all_attempts(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    model.script(refuses(400))
    await append(api, talk(1, 8))
    await change(database, tenant, "work", "attempts = 5")
    clock.step(2)
    await dispatcher.drain()
    assert await statuses(api) == ["failed"]
    asked = await ask(api, "POST", f"/{(await book(api))[0]['id']}/regenerate", 202)
    assert (asked["status"], asked["attempts"], asked["error"]) == ("pending", 0, None)
    await dispatcher.drain()
    assert await statuses(api) == ["ready"]


async def test_an_edited_memo_is_regenerated_only_on_explicit_request(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    (memo,) = await made(api, dispatcher, clock)
    await ask(api, "PATCH", f"/{memo['id']}", 200, {"text": "Kai kept the key."})
    for body in (None, {"instruction": "Again."}, {"replace_edited": False}):
        assert (await ask(api, "POST", f"/{memo['id']}/regenerate", 409, body))["code"] == "memo_edited"
    assert await due_rows(database, tenant) == []
    asked = await ask(api, "POST", f"/{memo['id']}/regenerate", 202, {"replace_edited": True})
    assert (asked["text"], asked["edited"], asked["in_prompt"]) == ("Kai kept the key.", True, True)
    await dispatcher.drain()
    (again,) = await book(api)
    assert (again["edited"], again["text"]) == (False, memo["text"])


async def test_a_written_memory_has_nothing_to_regenerate(api: httpx.AsyncClient) -> None:
    await put(api)
    memo = await write(api)
    refused = await ask(api, "POST", f"/{memo['id']}/regenerate", 409, {"replace_edited": True})
    assert refused["code"] == "memo_without_messages"


async def test_a_deleted_memo_comes_back_when_it_is_regenerated(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    (memo,) = await made(api, dispatcher, clock)
    await ask(api, "PATCH", f"/{memo['id']}", 200, {"text": "Kai kept the key."})
    await ask(api, "DELETE", f"/{memo['id']}", 204)
    asked = await ask(api, "POST", f"/{memo['id']}/regenerate", 202)
    assert (asked["status"], asked["text"], asked["highlights"], asked["in_prompt"]) == ("pending", "", [], False)
    assert (await context(api))["memo_window"]["gaps"] == [[1, 8]]
    await dispatcher.drain()
    assert [(m["text"], m["number"], m["in_prompt"]) for m in await book(api)] == [(memo["text"], 1, True)]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"instruction": ""}, "instruction"),
        ({"instruction": "x" * 2_001}, "instruction"),
        ({"replace_edited": "perhaps"}, "replace_edited"),
        ({"prompt": "x"}, "prompt"),
    ],
)
async def test_a_malformed_wish_is_refused_by_the_name_of_its_field(
    api: httpx.AsyncClient, body: Json, field: str
) -> None:
    await append(api, talk(1, 8))
    (memo,) = await book(api)
    assert (await ask(api, "POST", f"/{memo['id']}/regenerate", 422, body))["errors"][0]["loc"] == ["body", field]


# --- all at once ---


async def test_people_and_workers_on_one_book_never_fail(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    memos = await made(api, dispatcher, clock, 3)

    async def send(method: str, path: str, body: Json) -> int:
        """Send a request, and again if it waits in vain for its turn: a slow machine needs more than 3 s for all."""
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await api.request(method, f"/v1/chats/c{path}", json=body)).status_code == 503:
                # Deadlocks and locks that stay held have another text, and a usual machine needs no second request.
                assert answer.json()["detail"] == "Other requests are changing this chat; try again."
                assert SLOWNESS > 1
        return answer.status_code

    async def upset(n: int) -> int:
        path = f"/memos/{memos[n % 3]['id']}"
        requests = (
            send("PATCH", path, {"text": f"Edit {n}."}),
            send("PATCH", path, {"pinned": n % 2 == 0}),
            send("POST", f"{path}/regenerate", {"replace_edited": True}),
            send("POST", "/memos", {"text": f"Memory {n}."}),
            send("POST", "/messages", {"messages": [{"role": "user", "content": f"Message {n}."}]}),
            send("PUT", "", {"settings": {"memos": {"window": n}}}),
        )
        return max(await asyncio.gather(*requests))

    working = asyncio.create_task(dispatcher.drain())
    assert max(await asyncio.gather(*(upset(n) for n in range(8)))) < 300
    await working
    clock.step(60)
    await dispatcher.drain()
    listed = await book(api)
    assert sorted(memo["number"] for memo in listed) == list(range(1, len(listed) + 1))
    assert sum(memo["first_seq"] is None for memo in listed) == 8
    assert {memo["status"] for memo in listed} == {"ready"}
