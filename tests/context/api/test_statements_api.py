"""How many statements a context takes, in each preset."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.chats.presets import PRESETS
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.blocks.asking import put_block
from tests.facts.asking import USER, begin, set_fact
from tests.memories.asking import write
from tests.statements import watched
from tests.talk import Json, append, context, talk


async def count(app: FastAPI, api: httpx.AsyncClient, **options: Any) -> tuple[int, Json]:
    """How many statements a context takes, and the context."""
    async with watched(app.state.database) as statements:
        found = await context(api, **options)
    return len(statements.asked), found


@pytest.mark.parametrize("preset", PRESETS)
async def test_a_context_is_one_statement_and_recall_another(
    app: FastAPI, api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, preset: str
) -> None:
    await begin(api, preset=preset)
    await set_fact(api, "brother", "Tomas")
    await set_fact(api, "trade", "ferrywoman", under=USER)
    await put_block(api, "She is Mira.")
    await write(api, "Tomas sold the lamp.", under=USER)
    for first in range(1, 49, 8):
        await append(api, talk(first, first + 7))
        clock.step(5)
        await dispatcher.drain()
    await context(api)
    taken, found = await count(app, api, recall="off")
    assert taken == 1
    assert {"facts", "blocks", "history"} <= {segment["name"] for segment in found["segments"]}
    taken, found = await count(app, api, recall="auto", query="Tomas and the lamp")
    assert taken == 2
    assert "recalled" in {segment["name"] for segment in found["segments"]}
    await append(api, talk(49, 49))
    assert [(await count(app, api, recall=recall))[0] for recall in ("off", "auto")] == [1, 2]
