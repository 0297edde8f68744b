"""A conversation that changes in every way there is, told by narratives: what they tell stays true to it.

As `test_changing_conversation.py`, with summary, diary, scenes and running recap, written by people too, switched off
and on, with a model that tells of each message by a word of its own: so that what is told can be held against what was
said, word for word.
"""

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.sweep import Sweep

for module in ("checks", "changes", "chains", "shown", "teller", "telling", "telling_checks", "telling_model"):
    pytest.register_assert_rewrite(f"tests.conversation_{module}")

from tests.conversation_run import SHARDS, tell_stories  # noqa: E402 - a story that fails then says what differs
from tests.conversation_service import Service  # noqa: E402
from tests.conversation_telling import Telling  # noqa: E402
from tests.scripted_model import ScriptedModel  # noqa: E402

EXAMPLES = 128


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_narratives_stay_true_to_a_conversation_that_changes_in_every_way(
    shard: int,
    api: httpx.AsyncClient,
    sweep: Sweep,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    class Told(Telling):
        service = Service(api, sweep, model, clock, database, tenant)

    await tell_stories(Told, shard, examples=EXAMPLES)
