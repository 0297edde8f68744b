"""Run a state machine with settings from the environment; README.md explains the variables."""

import asyncio
import os

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import run_state_machine_as_test

from tests.oracle.driver import Driver

SHARDS = 16
STEPS = 20
SEED = int(os.environ.get("TESTS_SEED", "0"))
PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("TESTS_SHRINK") else [])]


async def run_examples(machine: type[Driver], shard: int, *, examples: int) -> None:
    """Run one shard's part of the examples in a thread beside the loop.

    TESTS_EXAMPLES overrides `examples`, the number over all shards. The same seed gives the same examples.
    """
    total = int(os.environ.get("TESTS_EXAMPLES", examples))
    await asyncio.to_thread(
        run_state_machine_as_test,
        hypothesis.seed(SEED * SHARDS + shard)(machine),
        settings=hypothesis.settings(
            max_examples=-(-total // SHARDS),
            stateful_step_count=STEPS,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=PHASES,
        ),
    )
