"""Compare what two chats of a user know with the reference model while they change at random; see README.md."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.oracle.knowledge_checks import KnowledgeService
from tests.oracle.knowledge_machine import KnowledgeMachine
from tests.oracle.runner import SHARDS, run_examples
from tests.scripted_model import ScriptedModel

EXAMPLES = 16


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_knowledge_matches_the_reference_after_each_change(
    shard: int,
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    class Machine(KnowledgeMachine):
        service = KnowledgeService(api, dispatcher, model, clock, database, tenant)

    await run_examples(Machine, shard, examples=EXAMPLES)
