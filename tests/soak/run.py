"""The soak: faults in random order, with the invariants checked after each of them."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from tests.slowness import SLOWNESS
from tests.soak.checks import calm_down, check_talks
from tests.soak.faults import Fault, says_during
from tests.soak.ledger import Violation
from tests.soak.stack import Stack
from tests.soak.talker import Talker

TALKERS = 4
NOTICE_S = 8.0 * SLOWNESS
"""How long `/readyz` may take to notice a fault."""

BOUNDED_S = 5.0 * SLOWNESS
ALL_WORK_S = 120.0 * SLOWNESS


class Soak:
    """A running service with clients that talk to it.

    Attributes:
        stack: The service.
        talkers: Its clients.
        count: How often what happened.

    """

    def __init__(self, stack: Stack, talkers: Sequence[Talker], count: Counter[str], rng: random.Random) -> None:
        self.count = count
        self.stack = stack
        self.talkers = talkers
        self._rng = rng
        self._talking: list[asyncio.Task[None]] = []

    @property
    def peaks(self) -> dict[str, int]:
        """How many bytes of memory the processes of the service used at most when they were checked, by name."""
        return {program.command.name: program.peak_bytes for program in self.stack.programs}

    async def start(self) -> None:
        """Let the clients talk."""
        self._talking = [asyncio.create_task(talker.run()) for talker in self.talkers]

    async def stop(self) -> None:
        """End the clients."""
        for task in self._talking:
            task.cancel()
        for talker in self.talkers:
            await talker.http.aclose()
        await asyncio.gather(*self._talking, return_exceptions=True)

    async def survive(self, fault: Fault, *, hold_s: float, full: bool = False, calm_s: float = BOUNDED_S) -> str:
        """Inject a fault for a while, and check the invariants after it. Raises Violation.

        Args:
            fault: The fault.
            hold_s: How long it lasts, in seconds.
            full: Whether to wait for all background work, and to check all chats.
            calm_s: How long to wait for background work otherwise.

        Returns a line that says what was found.

        """
        before = Counter(self.count)
        async with fault.inject(self.stack, self._rng):
            await self._talk(hold_s)
            if says := says_during(fault):
                await self.stack.until_readiness(says, NOTICE_S)
        await self.stack.until_ready(fault.ready_s)
        await self._talk(0.2)
        left = await self.check(full=full, calm_s=calm_s)
        self.count["faults"] += 1
        new = self.count - before
        work = "all work done" if left == 0 else f"{left} due"
        return (
            f"{fault.name}: {new['messages acknowledged']} messages, {new['changes acknowledged']} changes, "
            f"{new['contexts read']} contexts, {new['requests without an answer']} without an answer, "
            f"{new['answers 429 and 503']} refused, {work}"
        )

    async def check(self, *, full: bool, calm_s: float = BOUNDED_S) -> int:
        """Let the clients pause, and check the invariants; return how much work is due. Raises Violation."""
        async with self.paused():
            self.stack.check_processes()
            left = await calm_down(self.stack, ALL_WORK_S if full else calm_s)
            if full and left:
                raise Violation(f"{left} items of work are not done after {ALL_WORK_S:g} s")
            self.count["checks with all work done"] += left == 0
            await check_talks(self.talkers, calm=left == 0, former=full)
            self.stack.check_processes()
        self.stack.model.calls.clear()
        return left

    async def _talk(self, seconds: float) -> None:
        """Wait while the clients talk. Raises the violation of a client at once."""
        done, _ = await asyncio.wait(self._talking, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None]:
        """Keep the clients from taking a step during the block."""
        async with AsyncExitStack() as exits:
            for talker in self.talkers:
                await exits.enter_async_context(talker.turn)
            await self._talk(0)
            yield


@asynccontextmanager
async def soaking(path: Path, seed: int, talkers: int = TALKERS) -> AsyncGenerator[Soak]:
    """Run the service and its clients during the block.

    Args:
        path: An empty directory that every user can enter.
        seed: What is random follows from it; how it interleaves does not.
        talkers: The number of clients.

    """
    async with Stack(path) as stack:
        count: Counter[str] = Counter()
        clients = [Talker(stack, number, random.Random(f"{seed}-{number}"), count) for number in range(talkers)]
        soak = Soak(stack, clients, count, random.Random(seed))
        await soak.start()
        try:
            yield soak
        finally:
            with suppress(asyncio.CancelledError):
                await soak.stop()


def choose(faults: Sequence[Fault], rng: random.Random) -> Callable[[], Fault]:
    """Return a function that returns the next fault: all of them in random order, then all of them again."""
    waiting: list[Fault] = []

    def chosen() -> Fault:
        if not waiting:
            waiting.extend(rng.sample(faults, len(faults)))
        return waiting.pop()

    return chosen
