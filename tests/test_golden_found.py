"""What the review of the golden story has found."""

from typing import Any

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.sweep import Sweep
from tests.summary.folds import OWN_FOLDS
from tests.talk import append, get, ok, put, talk

SCENES = {
    "history": {"keep_messages": 8, "grow_messages": 0, "edges": "scenes", "keep_scenes": 1},
    "memos": {"enabled": False},
    "scenes": {"enabled": True, "detect": False},
}


@pytest.mark.parametrize(("settings", "layer"), [(OWN_FOLDS, "summary"), (SCENES, "scenes")], ids=["summary", "scenes"])
async def test_nothing_is_pending_that_nobody_will_make(
    api: httpx.AsyncClient, quoting_sweep: Sweep, clock: SteppedClock, settings: dict[str, Any], layer: str
) -> None:
    await put(api, settings=settings)
    await append(api, talk(1, 24))
    if layer == "scenes":
        ok(await api.post("/v1/chats/c/scenes/break", json={"seq": 12}), 200)
    await _settle(quoting_sweep, clock)
    assert "pending" not in await _statuses(api)

    await put(api, settings={layer: {"enabled": False}}, status=200)
    await _settle(quoting_sweep, clock)

    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}
    assert "pending" not in await _statuses(api)


async def _settle(sweep: Sweep, clock: SteppedClock) -> None:
    for _ in range(5):
        clock.step(2)
        await sweep.drain()


async def _statuses(api: httpx.AsyncClient) -> set[str]:
    """How messages are in the context."""
    return {item["status"] for item in (await get(api, "/inclusion", limit=500))["items"]}
