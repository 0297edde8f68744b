"""Compare what tools wrote with the reference model after each change; see README.md."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.oracle.runner import SHARDS, run_examples
from tests.oracle.service import Service
from tests.oracle.tool_machine import ToolMachine
from tests.scripted_model import ScriptedModel

EXAMPLES = 16


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_tool_calls_match_the_reference_after_each_change(
    shard: int,
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    class Machine(ToolMachine):
        service = Service(api, dispatcher, model, clock, database, tenant)

    await run_examples(Machine, shard, examples=EXAMPLES)
