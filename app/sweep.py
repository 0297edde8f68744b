"""The worker's loop: looks for ripe work, claims as much as there are free slots, makes it.

It looks at its start, when somebody rings, when the next row ripens, and every sweep interval; so it works
while Redis is away, and what another worker left behind when it was killed is found again.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

import asyncpg

from app.chats.scheduling import revive
from app.chats.service import list_anchors
from app.kit import work_queue
from app.kit.errors import Unavailable
from app.kit.fair_share import allocate_to_owners
from app.kit.job_context import JobContext
from app.kit.limits import UNLIMITED, TokenLimits
from app.kit.metered import MeteredModel
from app.kit.owners import Owner
from app.kit.ripe_work import RipeOwner, list_revivable, list_ripe_owners, next_ripe_at
from app.kit.usage import list_held_tenants
from app.kit.work_queue import Claimed
from app.layers.layer import Layer
from app.layers.runner import run_job

log = logging.getLogger(__name__)

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

    def __init__(
        self,
        ctx: JobContext,
        layers: Sequence[Layer],
        *,
        slots: int,
        sweep_s: float,
        limits: TokenLimits = UNLIMITED,
    ) -> None:
        self._ctx = ctx
        self._layers = layers
        self._slots = slots
        self._sweep_s = sweep_s
        self._limits = limits
        self._bell = asyncio.Event()
        self._running: dict[asyncio.Task[None], Claimed] = {}
        self._last_turns: dict[Owner, int] = {}  # of owners that had ripe work at the last look
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
        """Claim and start ripe items; return for how many seconds no other item will be ripe."""
        free = self._slots - len(self._running)
        if free <= 0:
            return self._sweep_s
        now = self._ctx.clock()
        async with self._ctx.database.unit_of_work() as db_session:
            # Without a model no tokens are used, so no work is held.
            held = await list_held_tenants(db_session.raw, self._limits, now=now) if self._ctx.model else []
            found = await list_ripe_owners(db_session, now=now, rows=self._slots, from_key=uuid4(), without=held)
            shares = self._share(self._in_turn(found))
            anchors = await list_anchors(db_session.raw, [owner.line for owner in shares if owner.is_line])
        lost = False
        for owner, count in shares.items():
            anchor_seq = anchors.get(owner.line, 0) if owner.is_line else 0
            lost |= await self._start(owner, count, anchor_seq, now) < count
        async with self._ctx.database.raw() as connection:
            soonest = await next_ripe_at(connection, now=now)
        if lost:
            return min(self._sweep_s, LOST_S)
        if soonest is None:
            return self._sweep_s
        return min(self._sweep_s, max(0.0, (soonest - self._ctx.clock()).total_seconds()))

    def _in_turn(self, found: Sequence[RipeOwner]) -> list[RipeOwner]:
        """Owners by their last turn: those without one first, the oldest work first among them."""
        self._last_turns = {ripe.owner: turn for ripe in found if (turn := self._last_turns.get(ripe.owner))}
        return sorted(found, key=lambda ripe: self._last_turns.get(ripe.owner, 0))

    def _share(self, found: Sequence[RipeOwner]) -> dict[Owner, int]:
        """How many items of each owner to claim: slots go to tenants first, then to the owners of each in turn."""
        running: dict[str, Counter[Owner]] = {}
        for claimed in self._running.values():
            running.setdefault(claimed.owner.tenant, Counter())[claimed.owner] += 1
        waiting: dict[str, dict[Owner, int]] = {}
        for ripe in found:
            waiting.setdefault(ripe.owner.tenant, {})[ripe.owner] = ripe.rows
        return allocate_to_owners(total=self._slots, running=running, waiting=waiting)

    async def _start(self, owner: Owner, limit: int, anchor_seq: int, now: datetime) -> int:
        """Claim up to `limit` items of an owner and start them; return how many."""
        async with self._ctx.database.unit_of_work() as db_session:
            claims = await work_queue.claim(db_session, owner, anchor_seq=anchor_seq, limit=limit, now=now)
        self._turn += 1
        self._started += len(claims)
        self._last_turns[owner] = self._turn
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
        ctx, model = self._ctx, None
        if ctx.model is not None:
            model = MeteredModel(ctx.model, ctx.database, ctx.clock, tenant=claimed.tenant, layer=claimed.layer)
            ctx = replace(ctx, model=model)
        await run_job(ctx, self._layers, claimed)
        if model is not None and model.has_answered:
            await self._revive()

    async def _revive(self) -> None:
        """An answer shows that the model is back: what failed while it was away is due again."""
        async with self._ctx.database.raw() as connection:
            owners = await list_revivable(connection)
        for owner in owners:  # one by one: the row of a chat is locked before its items
            async with self._ctx.database.unit_of_work() as db_session:
                if await revive(db_session, owner, now=self._ctx.clock()):
                    self._bell.set()

    async def _renew(self) -> None:
        """Renew the leases. An item whose lease is not renewed in time is claimed again, by any worker."""
        while True:
            await asyncio.sleep(work_queue.RENEW_S)
            if claims := list(self._running.values()):
                with suppress(Unavailable, asyncpg.PostgresError):
                    async with self._ctx.database.unit_of_work() as db_session:
                        await work_queue.renew(db_session, claims)

    async def _give_back(self) -> None:
        claims = dict(self._running)
        for task in claims:
            task.cancel()
        await asyncio.gather(*claims, return_exceptions=True)
        with suppress(Unavailable, asyncpg.PostgresError):
            for claimed in claims.values():  # one by one: rows held together can wait in a circle with an erasure
                async with self._ctx.database.unit_of_work() as db_session:
                    await work_queue.release(db_session, claimed)
