"""Run background work: let time pass, and make what is due."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.scripted_model import ScriptedModel


async def settle(dispatcher: Dispatcher, clock: SteppedClock, wait_s: float = 2) -> int:
    """Let time pass, by default the settle time, run what is due, and return the number of attempts."""
    clock.step(wait_s)
    return await dispatcher.drain()


async def settle_rounds(dispatcher: Dispatcher, clock: SteppedClock, rounds: int = 6, wait_s: float = 2) -> None:
    """Let time pass several times, so that work is run that other work made due."""
    for _ in range(rounds):
        await settle(dispatcher, clock, wait_s)


@asynccontextmanager
async def while_the_model_is_asked(dispatcher: Dispatcher, model: ScriptedModel) -> AsyncIterator[None]:
    """Run the block while the model holds its next answer back; then run all work that is due."""
    gate = model.hold(1)
    draining = asyncio.create_task(dispatcher.drain())
    await gate.reached()
    try:
        yield
    finally:
        gate.release()
        await draining
