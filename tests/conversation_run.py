"""Tells the stories of a state machine: how many, which ones, and whether one that fails is made short."""

import asyncio
import os

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import run_state_machine_as_test

from tests.conversation_teller import Storyteller

SHARDS = 16
STEPS = 20
SEED = int(os.environ.get("MEMOBOOK_SEED", "0"))
PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("MEMOBOOK_SHRINK") else [])]


async def tell_stories(machine: type[Storyteller], shard: int, *, examples: int) -> None:
    """Tell a shard's part of `examples` stories, the same in every run, in a thread beside the loop."""
    asked = int(os.environ.get("MEMOBOOK_EXAMPLES", examples))
    await asyncio.to_thread(
        run_state_machine_as_test,
        hypothesis.seed(SEED * SHARDS + shard)(machine),
        settings=hypothesis.settings(
            max_examples=-(-asked // SHARDS),
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=PHASES,
        ),
    )
