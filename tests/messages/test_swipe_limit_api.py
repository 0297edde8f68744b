"""A message has at most 1,000 swipes."""

import httpx

from app.messages.schemas import MAX_SWIPES
from tests.talk import Json, append, edit, get, ok, said

TEXTS = [f"Text {n}." for n in range(MAX_SWIPES)]


def _swiped(texts: list[str]) -> Json:
    """The message m2 with these alternatives, the first of which is selected."""
    return said(2, content=texts[0]) | {"swipes": texts}


async def test_a_full_message_takes_no_more_swipes(api: httpx.AsyncClient) -> None:
    await append(api, [said(1), _swiped(TEXTS[:-1])])
    added = await api.post("/v1/chats/c/messages/m2/swipes", json={"content": "The last."})
    assert added.status_code == 201
    refused = await api.post("/v1/chats/c/messages/m2/swipes", json={"content": "One more."})
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_swipes")
    assert refused.json()["detail"] == (
        "The message 'm2' would have 1001 swipes; the maximum is 1000. Select one of them and edit it instead."
    )
    message = await get(api, "/messages/m2")
    assert (len(message["swipes"]), message["content"]) == (MAX_SWIPES, "The last.")
    assert (await edit(api, "m2", content="Another text."))["content"] == "Another text."


async def test_a_reimport_adds_no_swipes_beyond_the_maximum(api: httpx.AsyncClient) -> None:
    await append(api, [said(1), _swiped(TEXTS[:-1])])
    more = _swiped([TEXTS[0], "One more.", "And another."])
    refused = await api.put("/v1/chats/c/messages", json={"messages": [said(1), more]})
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_swipes")
    assert refused.json()["detail"].startswith("The message 'm2' would have 1001 swipes; the maximum is 1000.")
    assert len((await get(api, "/messages/m2"))["swipes"]) == MAX_SWIPES - 1
    ok(await api.put("/v1/chats/c/messages", json={"messages": [said(1), _swiped(TEXTS)]}), 200)
