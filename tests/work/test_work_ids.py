"""What is accepted with a 202 names the work that was scheduled."""

from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.talk import Json, append, get, ok, put, talk

SETTINGS = {
    "history": {"keep_messages": 2, "grow_messages": 2},
    "summary": {"enabled": True, "threshold_messages": 4, "keep_messages": 2},
    "scenes": {"enabled": True, "detect": False},
    "diary": {"enabled": True, "lines": 1},
}


async def layers_of_work(api: httpx.AsyncClient) -> dict[str, str]:
    """The layer of each work item of the chat `c` that has not failed, by its id."""
    items = ok(await api.get("/v1/work", params={"chat_id": "c", "limit": 500}), 200)["items"]
    return {item["id"]: item["layer"] for item in items}


@pytest.fixture
async def chat(api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A chat with a memo, a summary, a scene and a folded diary, and no work left."""
    await put(api, settings=SETTINGS)
    await append(api, talk(1, 20))
    for number in (1, 2):
        ok(await api.post("/v1/chats/c/diary", json={"content": f"I kept letter number {number} dry."}), 201)
    ok(await api.put("/v1/chats/c/scenes/breaks/8"), 201)
    for _ in range(5):
        clock.step(40)
        await quoting_dispatcher.drain()
    assert await layers_of_work(api) == {}


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("/memos/{memo}/regenerate", "memos"),
        ("/summary/regenerate", "summary"),
        ("/scenes/{scene}/regenerate", "scenes"),
        ("/scenes/detect", "scenes"),
        ("/recap/rebuild", "scenes"),
        ("/diary/folded/regenerate", "diary"),
    ],
)
async def test_a_202_names_the_work(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, chat: None, path: str, layer: str
) -> None:
    memo, scene = (await get(api, "/memos"))["items"][0], (await get(api, "/scenes"))["items"][0]
    url = f"/v1/chats/c{path.format(memo=memo['id'], scene=scene['id'])}"
    asked: Json = ok(await api.post(url), 202)
    assert (await layers_of_work(api))[asked["work_id"]] == layer
    assert ok(await api.post(url), 202)["work_id"] == asked["work_id"], "asked again it is the same work"
    await quoting_dispatcher.drain()
    assert asked["work_id"] not in await layers_of_work(api)


@pytest.mark.parametrize("body", [None, {"instruction": "Tell of the rain."}])
async def test_nothing_to_fold_is_a_conflict(api: httpx.AsyncClient, body: Any) -> None:
    await put(api, settings=SETTINGS)
    await append(api, talk(1, 2))
    refused = ok(await api.post("/v1/chats/c/summary/regenerate", json=body), 409)
    assert refused["code"] == "nothing_to_fold"
    assert await layers_of_work(api) == {}
