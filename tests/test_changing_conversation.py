"""A conversation that changes in every way there is, in any order: the memory stays true to it.

A machine of hypothesis tells a story over HTTP, edits, swipes, hides, buries, cuts off, re-imports, restores and
forks it, lets memos be made by a model that answers well, badly or not at all, and after every step holds the
service against a model in plain Python (`conversation_model.py`, `conversation_checks.py`).

Every run tells the same stories. Environment variables ask for others: MEMOBOOK_EXAMPLES is how many to tell,
MEMOBOOK_SEED (any number but 0) chooses other ones, and with MEMOBOOK_SHRINK=1 a story that fails is made as short as
possible first, which takes minutes.
"""

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.sweep import Sweep

for module in ("checks", "changes", "teller", "machine"):
    pytest.register_assert_rewrite(f"tests.conversation_{module}")

from tests.conversation_machine import Conversation  # noqa: E402 - a story that fails then says what differs
from tests.conversation_run import SHARDS, tell_stories  # noqa: E402
from tests.conversation_service import Service  # noqa: E402
from tests.scripted_model import ScriptedModel  # noqa: E402

EXAMPLES = 400


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_memory_stays_true_to_a_conversation_that_changes_in_every_way(
    shard: int,
    api: httpx.AsyncClient,
    sweep: Sweep,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    class Told(Conversation):
        service = Service(api, sweep, model, clock, database, tenant)

    await tell_stories(Told, shard, examples=EXAMPLES)
