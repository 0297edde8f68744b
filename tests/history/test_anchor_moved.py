"""What layers learn of an anchor that moved."""

from collections.abc import Iterator
from typing import ClassVar

import httpx
import pytest

from app.chats.events import AnchorMoved
from app.chats.head import CutReason
from app.chats.settings import LayerSettings
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import DbSession
from app.layers.layer import Layer
from app.registry import registered
from tests.background import settle_rounds
from tests.scenes.story import hidden, set_break, story_model
from tests.scripted_model import ScriptedModel
from tests.talk import append, get, put, talk


class ListenerSettings(LayerSettings):
    """Nothing is set."""

    section: ClassVar[str] = "listener"


Moves = list[tuple[int, CutReason | None]]


@pytest.fixture
def moves() -> Moves:
    """Where the anchor moved, and why."""
    return []


@pytest.fixture
def layers(moves: Moves) -> Iterator[tuple[Layer, ...]]:
    """All layers, and one that only listens."""

    async def on_cut(_db_session: DbSession, event: AnchorMoved) -> None:
        moves.append((event.head.anchor_seq, event.reason))

    with registered(Layer(name="listener", settings=ListenerSettings, on_cut=on_cut)) as all_layers:
        yield all_layers


async def test_a_skip_past_hidden_messages_has_no_reason(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, moves: Moves
) -> None:
    model.otherwise = story_model()
    history = {"keep_messages": 4, "grow_messages": 2, "max_messages": 10, "edges": "every_message"}
    await put(api, settings={"preset": "scenes", "history": history, "scenes": {"detect": False, "auto_hide": 0}})
    await append(api, talk(1, 20))
    assert moves == [(17, "forced")]
    await append(api, talk(21, 22))  # so that four messages stay in sight
    await set_break(api, 18)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == list(range(1, 19))
    assert moves == [(17, "forced"), (19, None)]
    assert (await get(api, "/context"))["history"]["last_cut"]["reason"] == "forced"
