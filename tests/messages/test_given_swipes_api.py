"""Swipes that come with the messages of an append or a re-import."""

from typing import Any

import httpx
import pytest

from app.kit.tokens import count_tokens
from tests.talk import Json, append, context, get, ok, reimport, said, select_swipe, talk

TEXTS = ["First.", "Second.", "Third."]


async def swipes(api: httpx.AsyncClient, message_id: str = "m2") -> tuple[list[str], int]:
    """All texts of a message, and which is selected."""
    message = await get(api, f"/messages/{message_id}")
    assert message["content"] == message["swipes"][message["selected_swipe"]]
    assert message["tokens"] == count_tokens(message["content"])
    return message["swipes"], message["selected_swipe"]


def swiped(given: Any, **fields: Any) -> Json:
    message = said(2, swipes=given) | fields
    return {name: value for name, value in message.items() if name != "content" or "content" in fields}


@pytest.mark.parametrize(
    ("fields", "selected"),
    [({}, 0), ({"selected_swipe": 2}, 2), ({"content": "Second."}, 1), ({"content": "Third.", "selected_swipe": 2}, 2)],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_new_message_can_have_swipes(api: httpx.AsyncClient, method: str, fields: Json, selected: int) -> None:
    messages = [said(1), swiped(TEXTS, **fields), said(3)]
    ok(await api.request(method, "/v1/chats/c/messages", json={"messages": messages}), 201 if method == "POST" else 200)
    assert await swipes(api) == (TEXTS, selected)
    assert (await swipes(api, "m3"))[1] == 0
    text = (await context(api, format="text"))["text"]
    assert [one for one in TEXTS if one in text] == [TEXTS[selected]]
    assert (await select_swipe(api, "m2", 1))["content"] == "Second."
    counters = (await get(api, ""))["counters"]
    assert counters["tokens"] == sum(one["tokens"] for one in (await get(api, "/messages"))["items"])


async def test_a_retried_append_with_swipes_changes_nothing(api: httpx.AsyncClient) -> None:
    messages = [said(1), swiped(TEXTS, selected_swipe=1)]
    first = await append(api, messages)
    assert first["messages"][1]["content"] == "Second."
    assert await append(api, messages, status=200) == first | {"created": 0}
    other = [said(1), swiped(["Second.", "Other."])]
    assert (await append(api, [*other, said(3)]))["created"] == 1
    assert await swipes(api) == (TEXTS, 1)
    problem = await append(api, [swiped(TEXTS, selected_swipe=0)], status=409)
    assert problem["code"] == "message_id_taken"


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"swipes": TEXTS, "selected_swipe": 3}, "selected_swipe", "must be at most 2, the last index of swipes"),
        (
            {"swipes": TEXTS, "content": "Other."},
            "content",
            "must be one of swipes; or leave it out to select the first",
        ),
        (
            {"swipes": TEXTS, "selected_swipe": 0, "content": "Second."},
            "content",
            "must equal the selected one of swipes; or leave it out",
        ),
        ({"selected_swipe": 0}, "selected_swipe", "requires swipes, the list of all alternative texts"),
        ({"swipes": ["x"] * 1_001}, "swipes", None),
        ({"swipes": []}, "swipes", None),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_swipes_that_contradict_are_refused(
    api: httpx.AsyncClient, method: str, fields: Json, field: str, message: str | None
) -> None:
    body = {"messages": [said(1), {"id": "m2", "role": "assistant"} | fields]}
    problem = ok(await api.request(method, "/v1/chats/c/messages", json=body), 422)
    (error,) = problem["errors"]
    assert error["loc"] == ["body", "messages", 1, field]
    assert message is None or error["msg"] == message


async def test_a_re_import_adds_swipes_and_selects_as_given(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    line, first = (await get(api, ""))["line"], said(2)["content"]
    for given, selected, expected in (
        ([first, "B.", "C."], 1, ([first, "B.", "C."], 1)),
        ([first, "B.", "C."], 1, ([first, "B.", "C."], 1)),
        ([first, "C."], 1, ([first, "B.", "C."], 2)),
        ([first, "B2.", "C."], 1, ([first, "B2.", "C."], 1)),
        ([first, "B2.", "C.", "D."], 0, ([first, "B2.", "C.", "D."], 0)),
    ):
        before = await swipes(api)
        wanted = {"role": "assistant", "swipes": given, "selected_swipe": selected}
        outcome = await reimport(api, [{**said(1), "id": None}, wanted, *talk(3, 4)])
        assert outcome == {"added": 0, "changed": int(before != expected), "removed": 0, "line": line}
        assert await swipes(api) == expected
    revisions = (await get(api, "/messages/m2/revisions"))["items"]
    assert [(one["swipe"], one["content"]) for one in revisions] == [(1, "B.")]


async def test_swipes_are_added_to_messages_that_move(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    outcome = await reimport(api, [said(9), said(1), swiped([said(2)["content"], "B."], selected_swipe=1), *talk(3, 4)])
    assert (outcome["added"], outcome["changed"], outcome["removed"]) == (1, 1, 0)
    assert await swipes(api) == ([said(2)["content"], "B."], 1)
    assert not (await get(api, "/messages/m2"))["edited"]
