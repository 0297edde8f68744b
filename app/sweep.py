"""The worker's loop: looks for ripe work, claims as much as there are free slots, makes it.

It looks at its start, when somebody rings, when the next row ripens, and every sweep interval; so it works
while Redis is away, and what another worker left behind when it was killed is found again.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid4

import asyncpg

from app.chats.service import list_ripe_lines, lock_line
from app.diary import service as diary
from app.diary.jobs import make_diary
from app.kit import due
from app.kit.db import defer
from app.kit.due import Claimed
from app.kit.errors import Unavailable
from app.kit.limits import UNLIMITED, TokenLimits
from app.kit.llm import ModelError
from app.kit.metered import MeteredModel
from app.kit.slots import deal, share_slots
from app.kit.usage import list_held_tenants
from app.kit.workbench import Workbench
from app.memos import service as memos
from app.memos.jobs import make_memo
from app.scenes import service as scenes
from app.scenes.jobs import make_scene_work
from app.summary import service as summary
from app.summary.jobs import make_fold

log = logging.getLogger(__name__)

JOBS: Mapping[str, Callable[[Workbench, Claimed], Awaitable[bool]]] = {
    memos.NAME: make_memo,
    summary.NAME: make_fold,
    diary.NAME: make_diary,
    scenes.NAME: make_scene_work,
}
"""What makes the due work of each layer, and says whether a model answered.

Here and not in the pipeline, so that an API carries no model's client.
"""

AWAY_S = 1.0
"""How long to wait before looking again while PostgreSQL is away."""

LOST_S = 0.1
"""Likewise where rows were seen that somebody else held just when they were to be claimed."""


class Sweep:
    """Makes what is due.

    What is due for a tenant that has used up the tokens of its month is *held*: it stays due and nobody claims it,
    while what is being made already ends and other tenants' work goes on. The first look in the next month finds it.
    Requests notice nothing but this: a full cut that waits for held work waits until it is forced.

    Args:
        bench: What jobs work with.
        slots: How many things are made at once.
        sweep_s: The longest time between two looks.
        limits: How many tokens of the model each tenant may use in a month.

    """

    def __init__(self, bench: Workbench, *, slots: int, sweep_s: float, limits: TokenLimits = UNLIMITED) -> None:
        self._bench = bench
        self._slots = slots
        self._sweep_s = sweep_s
        self._limits = limits
        self._bell = asyncio.Event()
        self._running: dict[asyncio.Task[None], Claimed] = {}
        self._served: dict[UUID, int] = {}  # lines that wait, by their last turn
        self._turn = 0
        self._started = 0

    def ring(self) -> None:
        """Something may be due: look."""
        self._bell.set()

    async def run(self) -> None:
        """Work until cancelled; then what is not made is given back."""
        try:
            async with asyncio.TaskGroup() as tasks:  # without renewal there is no looking either
                tasks.create_task(self._renew())
                await self._keep_looking()
        finally:
            await self._give_back()

    async def drain(self) -> int:
        """Make everything that is ripe by the clock as it stands; returns how many things were tried."""
        first = self._started
        while True:
            before = self._started
            await self._look()
            if self._running:
                await asyncio.wait(list(self._running))
            elif self._started == before:  # what was started may be made already
                return self._started - first

    async def _keep_looking(self) -> None:
        while True:
            self._bell.clear()
            wait_s = await self._look_or_wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):  # wait_for would miss a cancellation just when somebody rings
                    await self._bell.wait()

    async def _look_or_wait(self) -> float:
        """Look once; returns for how many seconds there is nothing to look for.

        What PostgreSQL refuses (in a deadlock, beyond a time limit, read-only after a failover, before a
        migration) is waited out like its absence: a worker that ended would work no more when it passes.
        """
        try:
            return await self._look()
        except Unavailable:
            return AWAY_S
        except asyncpg.PostgresError as error:
            log.warning("PostgreSQL refuses to say what is due: %s", error)
            return AWAY_S

    async def _look(self) -> float:
        """Claim and start what is ripe; returns for how many seconds nothing else will be."""
        free = self._slots - len(self._running)
        if free <= 0:
            return self._sweep_s
        now = self._bench.clock()
        async with self._bench.database.raw() as connection:
            # Without a model nothing uses tokens, so nothing is held for want of them.
            held = await list_held_tenants(connection, self._limits, now=now) if self._bench.model else []
            found = await list_ripe_lines(connection, now=now, rows=self._slots, from_key=uuid4(), without=held)
        lines = self._in_turn(found)
        lost = False
        for line_id, count in self._share(lines).items():
            lost |= await self._start(lines[line_id], count, now) < count
        async with self._bench.database.unit_of_work() as db_session:
            soonest = await due.next_ripe_at(db_session, now=now)
        if lost:
            return min(self._sweep_s, LOST_S)
        if soonest is None:
            return self._sweep_s
        return min(self._sweep_s, max(0.0, (soonest - self._bench.clock()).total_seconds()))

    def _in_turn(self, found: Sequence[asyncpg.Record]) -> dict[UUID, asyncpg.Record]:
        """Lines by id: those not served lately first, oldest work first among them."""
        self._served = {row["line_id"]: self._served[row["line_id"]] for row in found if row["line_id"] in self._served}
        return {row["line_id"]: row for row in sorted(found, key=lambda row: self._served.get(row["line_id"], 0))}

    def _share(self, lines: Mapping[UUID, asyncpg.Record]) -> dict[UUID, int]:
        """How many rows of each line to claim: slots go to tenants first, then round the lines of each."""
        waiting: dict[str, dict[UUID, int]] = {}
        for line_id, row in lines.items():
            waiting.setdefault(row["tenant"], {})[line_id] = row["rows"]
        running = list(self._running.values())
        shares = share_slots(
            total=self._slots,
            running=Counter(claimed.tenant for claimed in running),
            waiting={tenant: sum(rows.values()) for tenant, rows in waiting.items()},
        )
        by_line = Counter(claimed.line_id for claimed in running)
        dealt: dict[UUID, int] = {}
        for tenant, share in shares.items():
            dealt |= deal(share, running=by_line, waiting=waiting[tenant])
        return dealt

    async def _start(self, line: asyncpg.Record, limit: int, now: datetime) -> int:
        async with self._bench.database.unit_of_work() as db_session:
            claims = await due.claim(
                db_session,
                chat_key=line["chat_key"],
                line_id=line["line_id"],
                anchor_seq=line["anchor_seq"],
                limit=limit,
                now=now,
            )
        self._turn += 1
        self._started += len(claims)
        self._served[line["line_id"]] = self._turn
        for claimed in claims:
            task = asyncio.create_task(self._make(claimed))
            self._running[task] = claimed
            task.add_done_callback(self._finished)
        return len(claims)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._bell.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("due work was left to its lease: %s", error)

    async def _make(self, claimed: Claimed) -> None:
        if claimed.attempts > due.MAX_ATTEMPTS:
            await self._fail(claimed, ModelError("no worker survived making it", transient=False))
            return
        try:
            answered = await JOBS[claimed.layer](self._bench_for(claimed), claimed)
        except ModelError as error:
            await self._fail(claimed, error)
        except Unavailable:
            raise
        except Exception as error:
            log.exception("making %s failed", claimed.layer)
            await self._fail(claimed, ModelError(f"unexpected: {type(error).__name__}", transient=False))
        else:
            if answered:
                await self._revive()

    def _bench_for(self, claimed: Claimed) -> Workbench:
        """The bench with a model whose calls count for the claim's tenant and layer."""
        bench = self._bench
        if bench.model is None:
            return bench
        metered = MeteredModel(bench.model, bench.database, bench.clock, tenant=claimed.tenant, layer=claimed.layer)
        return replace(bench, model=metered)

    async def _fail(self, claimed: Claimed, error: ModelError) -> None:
        """Record a failure on the row; the last one settles it, so a waiting cut is judged anew."""
        async with self._bench.database.unit_of_work() as db_session:
            head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
            await due.record_failure(
                db_session,
                claimed,
                error=error.reason,
                transient=error.transient,
                now=self._bench.clock(),
                retry_after_s=error.retry_after_s,
            )
            if head is not None and claimed.attempts >= due.MAX_ATTEMPTS:
                defer(db_session, "layer_settled", head)

    async def _revive(self) -> None:
        """An answer shows that the model is back: what failed while it was away is due again."""
        async with self._bench.database.unit_of_work() as db_session:
            if await due.revive_transient(db_session, now=self._bench.clock()):
                self._bell.set()

    async def _renew(self) -> None:
        """Keep the leases; one that PostgreSQL does not renew in time is claimed again, by whoever looks first."""
        while True:
            await asyncio.sleep(due.RENEW_S)
            if claims := list(self._running.values()):
                with suppress(Unavailable, asyncpg.PostgresError):
                    async with self._bench.database.unit_of_work() as db_session:
                        await due.renew(db_session, claims)

    async def _give_back(self) -> None:
        claims = dict(self._running)
        for task in claims:
            task.cancel()
        await asyncio.gather(*claims, return_exceptions=True)
        with suppress(Unavailable, asyncpg.PostgresError):
            for claimed in claims.values():  # one by one: rows held together can wait in a circle with an erasure
                async with self._bench.database.unit_of_work() as db_session:
                    await due.release(db_session, claimed)
