"""The worker's loop: polls for ripe work, claims as many items as there are free slots, and runs them.

A work item is a row for one thing that has to be made. It belongs to an owner: a line of a chat, a user or a tenant. An
item is *ripe* if its time has come, it has not failed for good, and no worker holds an unexpired lease on it.

The loop polls at its start, when it is woken, when an item has ended, when the next item becomes ripe, and at every
poll interval. So it works without Redis, and finds the items of a worker that was killed.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid4

import asyncpg

from app.chats.heads import list_anchors
from app.chats.scheduling import hasten, revive
from app.embeddings.metered import meter
from app.kit import work_queue, workers
from app.kit.attempts import put_off
from app.kit.errors import Unavailable
from app.kit.fair_share import allocate_to_owners
from app.kit.job_context import JobContext
from app.kit.limits import UNLIMITED, TokenLimits
from app.kit.llm.metered import MeteredModel
from app.kit.log.fields import set_fields
from app.kit.log.formatter import describe
from app.kit.owners import Owner
from app.kit.ripe_work import RipeOwner, list_revivable, list_ripe_owners, list_stuck, next_ripe_at
from app.kit.usage import list_held_tenants
from app.kit.work_queue import Claimed
from app.layers.layer import Layer
from app.layers.runner import run_job

log = logging.getLogger(__name__)

AWAY_S = 1.0
"""Seconds to wait before the next poll after PostgreSQL could not be reached or returned an error."""

SIGN_OFF_S = 2.0
"""The longest time that a worker spends on deleting its row when it ends."""

RELEASE_S = 5.0
"""The longest time that a worker spends on releasing its claims when it ends.

A claim that is not released within this time ends when its lease expires.
"""

CLOCK_CHECK_S = 10.0
"""Seconds between two searches for items that would wait too long because the clock of another machine is ahead, or the
clock of this machine was set back."""

PUT_OFF_S = 0.05
"""The worker polls for postponed work this many seconds after it is due, because the database's clock may be slower."""

LOST_S = 0.1
"""Seconds to wait before the next poll if some items that were found could not be claimed, such as locked ones."""


class Dispatcher:
    """Claims due work and runs it.

    The due work of a tenant that has used up its monthly tokens is *held*: it stays due, but is not claimed. Items that
    are already running end normally, and other tenants are not affected. The first poll of the next month finds the
    held work. Requests work as usual, with one exception: a full cut or a session's cut (`app/history/cut.py`), which
    removes the oldest messages from a chat's history, waits for their memories. If that work is held, the history grows
    until a cut is forced.

    Args:
        ctx: The context that jobs run with.
        layers: The memory layers.
        slots: The maximum number of items that run at the same time.
        poll_s: The longest time between two polls.
        limits: The maximum number of model tokens that each tenant may use per month.
        worker_id: The id that this worker reports; None for a new one.
        grace_s: How many seconds running items may go on after `stop`.

    """

    def __init__(
        self,
        ctx: JobContext,
        layers: Sequence[Layer],
        *,
        slots: int,
        poll_s: float,
        limits: TokenLimits = UNLIMITED,
        worker_id: UUID | None = None,
        grace_s: float = 0.0,
    ) -> None:
        self._ctx = ctx
        self._layers = layers
        self._slots = slots
        self._poll_s = poll_s
        self._limits = limits
        self._worker_id = worker_id or uuid4()
        self._grace_s = grace_s
        self._wake_up = asyncio.Event()
        self._stopping = asyncio.Event()
        self._running: dict[asyncio.Task[None], Claimed] = {}
        self._last_rounds: dict[Owner, int] = {}  # only owners that had ripe work at the last poll
        self._round = 0
        self._started = 0
        self._last_poll_at: datetime | None = None
        self._clock_checked_s = -math.inf
        self._renewed_s = -math.inf
        self._renewed_at: datetime | None = None
        self._put_off_until_s = -math.inf  # on the clock of the event loop

    def wake(self) -> None:
        """Wake the loop, because work may be due."""
        self._wake_up.set()

    def stop(self) -> None:
        """Make `run` return when all running items have ended, at the latest after the grace time."""
        self._stopping.set()
        self._wake_up.set()

    async def run(self) -> None:
        """Run until stopped or cancelled, then release the claims of unfinished items."""
        try:
            async with asyncio.TaskGroup() as tasks:  # if one of them fails, the others stop, too
                others = [tasks.create_task(self._renew()), tasks.create_task(self._keep_reporting())]
                polling = tasks.create_task(self._keep_polling())
                await self._stopping.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._grace_s):
                        await polling
                        while self._running:
                            await asyncio.wait(list(self._running))
                for task in others:
                    task.cancel()
        finally:
            await self._release_claims()

    async def drain(self) -> int:
        """Run items until none is ripe and no postponed item still waits; return how many were started."""
        first = self._started
        async with asyncio.TaskGroup() as tasks:  # if the renewal fails, this fails, too
            renewing = tasks.create_task(self._renew())
            while True:
                before = self._started
                await self._poll()
                if self._running:
                    await asyncio.wait(list(self._running))
                elif (wait_s := self._put_off_until_s - asyncio.get_running_loop().time()) > 0:
                    await asyncio.sleep(wait_s)
                elif self._started == before:  # if it is higher, the started items have ended already: poll again
                    break
            renewing.cancel()
        return self._started - first

    async def _keep_polling(self) -> None:
        while not self._stopping.is_set():
            self._wake_up.clear()
            wait_s = await self._poll_or_wait()
            if self._stopping.is_set():  # `stop` may have set the event before `clear`
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):  # wait_for would miss a cancellation during a wake-up
                    await self._wake_up.wait()

    async def _poll_or_wait(self) -> float:
        """Poll once and return how many seconds to wait before the next poll.

        An error from PostgreSQL (a deadlock, a timeout, read-only mode after a failover, a missing migration) is waited
        out like an outage: if the worker exited, it would not continue once the error has passed.
        """
        try:
            return await self._poll()
        except Unavailable:
            return AWAY_S
        except asyncpg.PostgresError as error:
            log.warning("polling for due work failed: %s", describe(error))
            return AWAY_S

    async def _poll(self) -> float:
        """Claim and start ripe items; return how many seconds to wait before the next poll."""
        free = self._slots - len(self._running)
        if free <= 0:
            return self._poll_s
        if self._running and self._stood_still():
            await self._renew_once()  # with expired leases, this worker would claim its own running items again
        now = self._ctx.clock()
        await self._hasten(now)
        async with self._ctx.database.unit_of_work() as db_session:
            uses_tokens = self._ctx.model or self._ctx.embedder  # without either, no work is held
            held = await list_held_tenants(db_session.raw, self._limits, now=now) if uses_tokens else []
            found = await list_ripe_owners(db_session, now=now, rows=self._slots, from_key=uuid4(), without=held)
            shares = self._share(self._by_last_round(found))
            anchors = await list_anchors(db_session.raw, [owner.line for owner in shares if owner.is_line])
        lost = False
        for owner, count in shares.items():
            if self._stopping.is_set():
                return 0.0
            anchor_seq = anchors.get(owner.line, 0) if owner.is_line else 0
            lost |= await self._start(owner, count, anchor_seq, now) < count
        async with self._ctx.database.raw() as connection:
            soonest = await next_ripe_at(connection, now=now)
        if lost:
            return min(self._poll_s, LOST_S)
        if soonest is None:
            return self._poll_s
        return min(self._poll_s, max(0.0, (soonest - self._ctx.clock()).total_seconds()))

    async def _hasten(self, now: datetime) -> None:
        """Make items ripe that wait only because the clocks of two machines differ, or a clock was set back."""
        was_set_back = self._last_poll_at is not None and now < self._last_poll_at
        self._last_poll_at = now
        if not was_set_back and time.monotonic() < self._clock_checked_s + CLOCK_CHECK_S:
            return
        async with self._ctx.database.raw() as connection:
            owners = await list_stuck(connection, now=now)
        # One transaction for each owner: with one for all, a line's row would be locked after items of another line.
        for owner in owners:
            async with self._ctx.database.unit_of_work() as db_session:
                await hasten(db_session, owner, now=now)
        self._clock_checked_s = time.monotonic()

    def _by_last_round(self, found: Sequence[RipeOwner]) -> list[RipeOwner]:
        """Return the owners, the one that was served longest ago first.

        Owners that were never served come before all others, in the order of `found`. An owner that was served, but
        that a later poll did not find, counts as never served. Each call of `_start` is a round that serves one owner.
        """
        self._last_rounds = {ripe.owner: round_ for ripe in found if (round_ := self._last_rounds.get(ripe.owner))}
        return sorted(found, key=lambda ripe: self._last_rounds.get(ripe.owner, 0))

    def _share(self, found: Sequence[RipeOwner]) -> dict[Owner, int]:
        """Return how many items of each owner to claim: tenants share the slots, owners the slots of their tenant."""
        running: dict[str, Counter[Owner]] = {}
        for claimed in self._running.values():
            running.setdefault(claimed.owner.tenant, Counter())[claimed.owner] += 1
        waiting: dict[str, dict[Owner, int]] = {}
        for ripe in found:
            waiting.setdefault(ripe.owner.tenant, {})[ripe.owner] = ripe.rows
        return allocate_to_owners(total=self._slots, running=running, waiting=waiting)

    async def _start(self, owner: Owner, limit: int, anchor_seq: int, now: datetime) -> int:
        """Claim up to `limit` items of an owner and start them; return how many were claimed."""
        async with self._ctx.database.unit_of_work() as db_session:
            claims = await work_queue.claim(db_session, owner, anchor_seq=anchor_seq, limit=limit, now=now)
        self._round += 1
        self._started += len(claims)
        self._last_rounds[owner] = self._round
        for claimed in claims:
            task = asyncio.create_task(self._make(claimed))
            self._running[task] = claimed
            task.add_done_callback(self._finished)
        return len(claims)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._wake_up.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("an item failed to run and is due again when its lease expires: %s", describe(error))

    async def _make(self, claimed: Claimed) -> None:
        set_fields(work=str(claimed.work_id))
        ctx, model = self._ctx, None
        if ctx.model is not None:
            asked = ctx.layer_models.get(claimed.layer, ctx.model)
            model = MeteredModel(asked, ctx.database, ctx.clock, tenant=claimed.tenant, layer=claimed.layer)
            ctx = replace(ctx, model=model)
        if ctx.embedder is not None:
            metered = meter(ctx.embedder, ctx.database, ctx.clock, tenant=claimed.tenant, layer=claimed.layer)
            ctx = replace(ctx, embedder=metered)
        try:
            await run_job(ctx, self._layers, claimed)
        except Unavailable as error:
            log.info("%s is due again soon: %s", claimed.layer, describe(error))
            await self._put_off(claimed)
        if model is not None and model.has_answered:
            with suppress(Unavailable):
                await self._revive()

    async def _put_off(self, claimed: Claimed) -> None:
        """Release an item as soon as the database can be reached, and poll when the item is due again."""
        while True:
            now = self._ctx.clock()
            try:
                async with self._ctx.database.unit_of_work() as db_session:
                    wait_s = await put_off(db_session, claimed, now=now)
            except Unavailable:
                await asyncio.sleep(AWAY_S)
            else:
                loop = asyncio.get_running_loop()
                due_s = loop.time() + wait_s + PUT_OFF_S
                self._put_off_until_s = max(self._put_off_until_s, due_s)
                loop.call_at(due_s, self._wake_up.set)
                return

    async def _revive(self) -> None:
        """Make items due again that failed while the model was unavailable.

        Called after each job that got an answer of a model, because the model is then available.
        """
        async with self._ctx.database.raw() as connection:
            owners = await list_revivable(connection)
        # One transaction for each owner: with one for all, a line's row would be locked after items of another line.
        for owner in owners:
            async with self._ctx.database.unit_of_work() as db_session:
                if await revive(db_session, owner, now=self._ctx.clock()):
                    self._wake_up.set()

    async def _renew(self) -> None:
        """Renew the leases. An item whose lease is not renewed in time is claimed again, by any worker."""
        while True:
            await asyncio.sleep(work_queue.RENEW_S)
            with suppress(Unavailable, asyncpg.PostgresError):
                await self._renew_once()

    async def _renew_once(self) -> None:
        now_s, now = time.monotonic(), self._ctx.clock()
        if claims := list(self._running.values()):
            async with self._ctx.database.unit_of_work() as db_session:
                await work_queue.renew(db_session, claims)
        self._renewed_s, self._renewed_at = now_s, now

    def _stood_still(self) -> bool:
        """Return whether the leases were not renewed for so long that this process must have stood still.

        Before the first renewal, the result is True. Two clocks are checked: the monotonic clock stops while the
        machine is suspended, and the clock of the context (`_ctx.clock`) can be set back.
        """
        late_s = 2 * work_queue.RENEW_S
        if self._renewed_at is None or time.monotonic() > self._renewed_s + late_s:
            return True
        return (self._ctx.clock() - self._renewed_at).total_seconds() > late_s

    async def _keep_reporting(self) -> None:
        """Report that this worker runs, until cancelled; then delete the worker's row."""
        try:
            while True:
                with suppress(Unavailable, asyncpg.PostgresError):
                    async with self._ctx.database.raw() as connection:
                        await workers.report(connection, self._worker_id)
                await asyncio.sleep(workers.BEAT_S)
        finally:
            with suppress(Unavailable, asyncpg.PostgresError, TimeoutError):
                async with asyncio.timeout(SIGN_OFF_S), self._ctx.database.raw() as connection:
                    await workers.sign_off(connection, self._worker_id)

    async def _release_claims(self) -> None:
        claims = dict(self._running)
        for task in claims:
            task.cancel()
        await asyncio.gather(*claims, return_exceptions=True)
        with suppress(Unavailable, asyncpg.PostgresError, TimeoutError):
            async with asyncio.timeout(RELEASE_S):
                for claimed in claims.values():  # one by one: locking several could deadlock with an erasure
                    async with self._ctx.database.unit_of_work() as db_session:
                        await work_queue.release(db_session, claimed)
