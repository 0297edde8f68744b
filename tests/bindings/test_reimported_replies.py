"""Open calls when a reply gets a new text or returns, and when the message that they answer is gone."""

import httpx
import pytest

from tests.diary.diaries import entries, keep_diary, prompt, save
from tests.talk import (
    CALL,
    Act,
    Json,
    add_swipe,
    append,
    cut_off,
    edit,
    get,
    hide,
    ok,
    said,
    select_swipe,
    soft_delete,
    talk,
)

NEXT = "I said the next thing."
TEXT = "The next thing."
OLD = said(4)["content"]


async def send_again(api: httpx.AsyncClient, messages: list[Json], *, ids: bool = False) -> Json:
    """Send the whole chat again, without the ids of its messages unless `ids`."""
    left_out = () if ids else ("id",)
    body = [{name: value for name, value in one.items() if name not in left_out} for one in messages]
    return ok(await api.put("/v1/chats/c/messages", json={"messages": body}), 200)


async def statuses(api: httpx.AsyncClient) -> list[tuple[str, str | None]]:
    items = (await get(api, "/tools/calls"))["items"]
    return [(call["status"], call["message_id"]) for call in items if call["status"] != "dropped"]


async def await_swipe(api: httpx.AsyncClient) -> None:
    """A call that waits for the next alternative of `m4`, the newest message."""
    await keep_diary(api)
    await append(api, talk(1, 4))
    await save(api, NEXT, swipe="next")
    assert await statuses(api) == [("open", "m4")]


def with_swipes(*texts: str, selected: int) -> Json:
    return said(4, content=texts[selected], swipes=list(texts), selected_swipe=selected)


ARRIVALS: dict[str, Act] = {
    "swipe": lambda api: add_swipe(api, "m4", TEXT),
    "edit": lambda api: edit(api, "m4", content=TEXT),
    "import with swipes": lambda api: send_again(api, [*talk(1, 3), with_swipes(OLD, TEXT, selected=1)]),
    "import with an edit": lambda api: send_again(api, [*talk(1, 3), said(4, content=TEXT)]),
    "import with ids": lambda api: send_again(api, [*talk(1, 3), said(4, content=TEXT)], ids=True),
    "import and go on": lambda api: send_again(api, [*talk(1, 3), with_swipes(OLD, TEXT, selected=1), said(5)]),
    "insert before": lambda api: send_again(api, [said(1), said(9), said(2), said(3), said(4, content=TEXT)], ids=True),
    "insert after": lambda api: send_again(
        api, [*talk(1, 3), with_swipes(OLD, TEXT, selected=1), said(9), said(5)], ids=True
    ),
}


@pytest.mark.parametrize("arrival", ARRIVALS)
async def test_any_new_text_is_the_next_alternative(api: httpx.AsyncClient, arrival: str) -> None:
    await await_swipe(api)
    if arrival == "insert after":
        await append(api, [said(5)])
        await save(api, NEXT, message_id="m4", swipe="next")  # the user's message dropped the first one
    await ARRIVALS[arrival](api)
    assert [status for status, _ in await statuses(api)] == ["shown"]
    assert NEXT in await prompt(api)
    (entry,) = await entries(api)
    reply = (await get(api, "/messages"))["items"][-2 if "go on" in arrival else -1 if arrival != "insert after" else 3]
    assert (entry["message_id"], entry["at_seq"], TEXT) == (reply["id"], reply["seq"], reply["content"])
    await edit(api, reply["id"], content="Something else.")
    assert await prompt(api) == ""


async def test_a_call_without_text_gets_one_and_is_hidden_at_once(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(4, content="", tool_calls=[CALL])])
    await save(api, NEXT, message_id="m4", swipe="next")
    await edit(api, "m4", content=TEXT, hidden=True)
    assert [message_id for _, message_id in await statuses(api)] == ["m4"]
    assert (await prompt(api), (await get(api, "/context"))["history"]["messages"]) == ("", 0)


async def test_an_alternative_that_is_not_selected_binds_too(api: httpx.AsyncClient) -> None:
    await await_swipe(api)
    await send_again(api, [*talk(1, 3), with_swipes(OLD, TEXT, selected=0)])
    assert await statuses(api) == [("hidden", "m4")]
    await select_swipe(api, "m4", 1)
    assert NEXT in await prompt(api)


async def test_a_known_alternative_is_not_the_next_one(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 4))
    await add_swipe(api, "m4", "No.")
    await save(api, NEXT, swipe="next")
    await select_swipe(api, "m4", 0)
    await send_again(api, [*talk(1, 3), said(4, content="No.")])
    assert await statuses(api) == [("open", "m4")]
    await send_again(api, [*talk(1, 3), with_swipes(OLD, "No.", TEXT, selected=2)])
    assert NEXT in await prompt(api)


async def propose(api: httpx.AsyncClient) -> None:
    """An open call of the reply to the user's `m3`."""
    await keep_diary(api)
    await append(api, talk(1, 3))
    await save(api, "We are engaged.")


DEPARTURES: dict[str, Act] = {
    "delete": lambda api: soft_delete(api, "m3"),
    "hide": lambda api: hide(api, (3, 3)),
    "cut off": lambda api: cut_off(api, 3),
    "import without it": lambda api: send_again(api, talk(1, 2)),
    "import on a new line": lambda api: send_again(api, [said(1), said(9), said(2)], ids=True),
    "import in another order": lambda api: send_again(api, [said(2), said(1)], ids=True),
}


@pytest.mark.parametrize("departure", DEPARTURES)
async def test_a_call_ends_with_the_message_that_it_answers(api: httpx.AsyncClient, departure: str) -> None:
    await propose(api)
    await DEPARTURES[departure](api)
    await append(api, [said(4, content="Something unrelated.")])
    assert (await statuses(api), await entries(api), await prompt(api)) == ([], [], "")
    line = (await get(api, "/lines"))["items"]
    if len(line) > 1:  # the former line still has the open call
        (former,) = [one["line"] for one in line if not one["current"]]
        assert [one["status"] for one in (await get(api, "/tools/calls", line=former))["items"]] == ["open"]


async def test_a_call_ends_with_the_result_that_it_follows(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, [said(1), said(2, tool_calls=[CALL])])
    await save(api)
    await soft_delete(api, "m2")
    assert await statuses(api) == []


async def test_an_awaited_alternative_ends_with_its_message(api: httpx.AsyncClient) -> None:
    await await_swipe(api)
    await hide(api, (4, 4))
    assert await statuses(api) == [("open", "m4")]
    await soft_delete(api, "m4")
    assert (await statuses(api), await entries(api)) == ([], [])


async def test_a_call_that_names_its_reply_waits_for_it(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 3))
    await save(api, "We are engaged.", message_id="m4")
    await soft_delete(api, "m3")
    await append(api, [said(4)])
    assert await statuses(api) == [("shown", "m4")]


async def test_an_edit_of_the_question_keeps_the_call_open(api: httpx.AsyncClient) -> None:
    await propose(api)
    await edit(api, "m3", content="Will you marry me?")
    await append(api, [said(4)])
    assert await statuses(api) == [("shown", "m4")]


@pytest.mark.parametrize("text", [OLD, "Another reply."])
@pytest.mark.parametrize("moved", [False, True])
async def test_a_restored_reply_binds_like_a_new_one(api: httpx.AsyncClient, text: str, moved: bool) -> None:
    await keep_diary(api)
    await append(api, talk(1, 4))
    await save(api, "Before.")
    await soft_delete(api, "m4")
    await save(api, "After.")
    assert await statuses(api) == [("hidden", "m4"), ("open", None)]
    inserted = [said(9)] if moved else []
    await send_again(api, [said(1), said(2), *inserted, said(3), said(4, content=text)], ids=True)
    assert await statuses(api) == [("shown" if text == OLD else "hidden", "m4"), ("shown", "m4")]
    shown = await prompt(api)
    assert ("Before." in shown, "After." in shown) == (text == OLD, True)


async def test_an_entry_returns_with_a_reply_without_id(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 4))
    await save(api, "We are engaged.")
    await send_again(api, talk(1, 3))
    assert (await statuses(api), await prompt(api)) == ([("hidden", "m4")], "")
    outcome = await send_again(api, [*talk(1, 4), said(5)])
    assert (outcome["added"], outcome["changed"], outcome["removed"]) == (2, 0, 0)
    assert await statuses(api) == [("shown", "m4")]
    assert "We are engaged." in await prompt(api)
    listed = (await get(api, "/messages"))["items"]
    assert [(one["seq"], one["id"]) for one in listed[:4]] == [(n, f"m{n}") for n in range(1, 5)]


async def test_another_reply_without_id_is_a_new_message(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 4))
    await save(api, "We are engaged.")
    await send_again(api, talk(1, 3))
    await send_again(api, [*talk(1, 3), said(4, content="Another reply.")])
    assert (await statuses(api), await prompt(api)) == ([("hidden", "m4")], "")
    assert (await get(api, "/messages"))["items"][-1]["seq"] == 5


async def test_a_restored_question_drops_the_call_before_it(api: httpx.AsyncClient) -> None:
    await keep_diary(api)
    await append(api, talk(1, 5))
    await cut_off(api, 4)
    await save(api, "We are engaged.")
    await send_again(api, [*talk(1, 3), said(5)], ids=True)
    assert await statuses(api) == []
