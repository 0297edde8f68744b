"""Whether a model that hangs slows appends down."""

import asyncio
from dataclasses import dataclass
from statistics import median

from app.kit.db import Connection
from bench.chats import LONG
from bench.load import Outcome, Plan
from bench.processes import Load, say
from bench.requests import write_requests
from tests.scripted_model import ScriptedModel

APPENDS_PER_SECOND = 60
"""Well below the capacity of worker and model: a memo for every fourth append."""
_CONNECTIONS = 16
_DRAIN_S = 60
_RIPE = "SELECT count(*) FROM work WHERE failed_at IS NULL AND run_after <= now()"


@dataclass(frozen=True, slots=True)
class Hanging:
    """Runs of the same load with a model that answers at once, and with one that does not answer."""

    fast: list[Outcome]
    hanging: list[Outcome]

    @property
    def ratio(self) -> float:
        """Return the median of p95 with the hanging model as a multiple of p95 with the fast one."""
        return median(slow.p95_ms / fast.p95_ms for fast, slow in zip(self.fast, self.hanging, strict=True))


async def compare_models(
    load: Load, connection: Connection, model: ScriptedModel, *, port: int, key: str, runs: int, measure_s: float
) -> Hanging:
    """Append at a steady pace while memos are made, and while they wait for the model, in turn."""
    plan = Plan(
        port=port,
        requests=write_requests("append", LONG, key),
        connections=_CONNECTIONS,
        warm_s=1.0,
        measure_s=measure_s,
        per_second=APPENDS_PER_SECOND,
    )
    hanging = Hanging([], [])
    for _ in range(runs):
        hanging.fast.append(await load.run(plan))
        await _drain(connection)
        gate = model.hold()
        try:
            hanging.hanging.append(await load.run(plan))
        finally:
            gate.release()
        await _drain(connection)
    say(f"appends with a model that hangs: {hanging.ratio:.2f} times the p95 of one that answers")
    return hanging


async def _drain(connection: Connection) -> None:
    """Wait until the worker has finished the accumulated work, so that it does not slow the next run."""
    for _ in range(10 * _DRAIN_S):
        if not await connection.fetchval(_RIPE):
            return
        await asyncio.sleep(0.1)
    raise TimeoutError("the worker does not come to the end of its work")
