"""Queues requests in memory until they get a database connection, in the order of `kit/gate/admission.py`.

A request that is cancelled, that waits for too long, or whose client disconnects gives up its place.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import ClientDisconnect

from app.kit.errors import ChatBusy, TooManyWaiting, Unavailable
from app.kit.gate.admission import Admission, Phase, Reason, Refused, Room, Ticket
from app.kit.gate.client_watch import until_client_is_gone

TURN_S: Final = 3.0
"""How long a request that changes a chat waits for its turn and for a connection together: as long as PostgreSQL waits
for a lock (`lock_timeout` in `kit/db.py`)."""

CONNECTION_S: Final = 10.0
"""How long a request that changes no chat waits for a connection."""

SOON_S: Final = 0.05
"""How long a request waits before its client is watched. Watching costs about a tenth of the time that a request for a
context takes."""

_REFUSALS: Final = {
    Reason.CHAT: "Too many requests are waiting to change this chat; try again.",
    Reason.TENANT: "Too many requests of this tenant are waiting; try again.",
    Reason.TOTAL: "Too many requests are waiting; try again.",
}


@dataclass(slots=True)
class GateCounts:
    """Counts of waits and refusals since this process started.

    Attributes:
        waits: How many requests waited.
        wait_s: How long they waited, in seconds.
        refusals: Refused requests by reason: the limit that was reached, `timeout`, or `disconnect`.

    """

    waits: int = 0
    wait_s: float = 0.0
    refusals: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys([*(reason.value for reason in Reason), "timeout", "disconnect"], 0)
    )


class ConnectionGate:
    """Admits requests to the connections of a pool."""

    def __init__(self, room: Room) -> None:
        self.counts = GateCounts()
        self._admission = Admission(room)
        self._pending: dict[Ticket, asyncio.Future[None]] = {}

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return self._admission.waiting

    async def enter(self, ticket: Ticket) -> None:
        """Wait until the ticket holds a connection, which it keeps until `leave`.

        Raises TooManyWaiting if too many requests wait already, ChatBusy if the turn of the chat does not come in time,
        Unavailable if no connection becomes free in time, and ClientDisconnect if the client disconnects meanwhile.
        """
        try:
            if self._admission.ask(ticket):
                return
        except Refused as refusal:
            self.counts.refusals[refusal.reason.value] += 1
            raise TooManyWaiting(_REFUSALS[refusal.reason]) from None
        await self._wait(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Give up the ticket's connection or place in a queue; wake the requests that get a connection as a result."""
        for granted in self._admission.end(ticket):
            pending = self._pending.get(granted)
            if pending is not None:
                _set(pending)

    async def _is_granted_soon(self, ticket: Ticket) -> bool:
        """Wait for a connection, at most `SOON_S`; return whether the ticket holds one."""
        loop = asyncio.get_running_loop()
        granted = self._pending[ticket] = loop.create_future()
        timer = loop.call_later(SOON_S, _set, granted)
        try:
            await granted
        finally:
            timer.cancel()
        return ticket.phase is Phase.HOLDING

    async def _wait(self, ticket: Ticket) -> None:
        self.counts.waits += 1
        began_at = time.monotonic()
        try:
            if await self._is_granted_soon(ticket):
                return
            granted = self._pending[ticket] = asyncio.get_running_loop().create_future()
            async with asyncio.timeout(CONNECTION_S if ticket.chat is None else TURN_S):
                if not await until_client_is_gone(granted):
                    self.counts.refusals["disconnect"] += 1
                    raise ClientDisconnect
        except TimeoutError:
            phase = ticket.phase
            if phase is Phase.HOLDING:  # the connection came just as the time ended
                return
            self.counts.refusals["timeout"] += 1
            self.leave(ticket)
            if phase is Phase.TURN:
                raise ChatBusy("Other requests are changing this chat; try again.") from None
            raise Unavailable("All connections to the database are in use; try again.") from None
        except BaseException:
            self.leave(ticket)
            raise
        finally:
            del self._pending[ticket]
            self.counts.wait_s += time.monotonic() - began_at


def _set(pending: "asyncio.Future[None]") -> None:
    """Wake the task that awaits `pending`, if it still does."""
    if not pending.done():
        pending.set_result(None)
