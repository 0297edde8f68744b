"""Compare what chats learn from their messages with the reference while they change at random; see README.md."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.oracle.learning_machine import LearningMachine, LearningService
from tests.oracle.runner import SHARDS, run_examples
from tests.scripted_model import ScriptedModel

EXAMPLES = 16


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_learnt_memories_match_the_messages(
    shard: int,
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    class Machine(LearningMachine):
        service = LearningService(api, dispatcher, model, clock, database, tenant)

    await run_examples(Machine, shard, examples=EXAMPLES)
