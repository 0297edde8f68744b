"""Decides which request gets the next database connection of this process. Pure.

A transaction that changes a chat waits for the chat's row, and holds a connection while it waits. So a request first
waits here, in memory: for its turn in the chat, then for a connection.

- A chat has one turn: of all requests that change the chat, only the one that has the turn holds a connection. Turns
  are FIFO.
- With 2 or more connections, requests that change chats never hold all of them. Requests of one tenant that change
  chats hold at most half of them.
- With 4 or more connections, a single tenant never holds all of them: it leaves a quarter of the connections (rounded
  down) to the others.
- A free connection goes to the tenant that holds the fewest; tenants that hold equally many get one in turn. Requests
  of one tenant are FIFO, except that reads (requests that change no chat) overtake writes that have to wait because of
  these limits.
- Requests of the service itself have no tenant. Only the number of connections limits how many they hold.

The number of waiting requests is limited per chat, per tenant and in total; see `WaitLimits` and `MAX_WAITING`.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

MAX_WAITING: Final = 4_096
"""The maximum number of waiting requests of all tenants together."""


class Phase(Enum):
    """The state of a ticket. In TURN it waits for its turn in a chat, in CONNECTION for a connection."""

    NEW = "new"
    TURN = "turn"
    CONNECTION = "connection"
    HOLDING = "holding"
    ENDED = "ended"


class Reason(Enum):
    """Why a ticket is refused: the limit that is reached."""

    CHAT = "chat"
    TENANT = "tenant"
    TOTAL = "total"


class Refused(Exception):
    """Too many requests wait already."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How many requests may wait.

    Attributes:
        per_chat: The maximum number of requests that wait for their turn in a chat.
        per_tenant: The maximum number of waiting requests of a tenant.

    """

    per_chat: int = 64
    per_tenant: int = 256


DEFAULT_LIMITS: Final = WaitLimits()


@dataclass(frozen=True, slots=True)
class Room:
    """How many requests may hold a connection, and how many may wait.

    Attributes:
        connections: The number of connections.
        waiting: The maximum numbers of waiting requests.

    """

    connections: int
    waiting: WaitLimits = DEFAULT_LIMITS

    @property
    def per_tenant(self) -> int:
        """The maximum number of connections of one tenant: all but a quarter; all if there are fewer than four."""
        return self.connections - self.connections // 4

    @property
    def writes(self) -> int:
        """The maximum number of connections that change chats: all but a quarter; with two or three, all but one."""
        return max(1, self.connections - max(1, self.connections // 4))

    @property
    def writes_per_tenant(self) -> int:
        """The maximum number of connections with which one tenant changes chats: half of them."""
        return max(1, self.connections // 2)


class Ticket:
    """A request for a connection.

    Args:
        tenant: The tenant whose share it counts for; None for the service itself, which may hold all connections.
        chat: The chat that the transaction changes, or None.

    """

    __slots__ = ("chat", "number", "phase", "tenant")

    def __init__(self, tenant: str | None, chat: UUID | None) -> None:
        self.tenant = tenant
        self.chat = chat
        self.phase = Phase.NEW
        self.number = 0


_Queue = OrderedDict[Ticket, None]


class Admission:
    """The connections in use, the turns of chats, and the tickets that wait. Not thread-safe."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._per_tenant, self._writes_per_tenant = room.per_tenant, room.writes_per_tenant
        self._max_writes = room.writes
        self._used = 0
        self._writes = 0
        self._held: dict[str | None, int] = {}
        self._held_writes: dict[str | None, int] = {}
        self._turns: dict[UUID, _Queue] = {}  # the chats whose turn is taken, with the tickets that wait for it
        self._reads_waiting: OrderedDict[str | None, _Queue] = OrderedDict()
        self._writes_waiting: OrderedDict[str | None, _Queue] = OrderedDict()
        self._waiting: dict[str | None, int] = {}
        # For each waiting tenant, the value of `_grants` after the tenant's last grant. Until the first grant, this is
        # the value when the tenant began to wait. `_grants` counts the grants to all tenants.
        self._served: dict[str | None, int] = {}
        self._all_waiting = 0
        self._numbers = 0
        self._grants = 0

    @property
    def used(self) -> int:
        """The number of connections in use."""
        return self._used

    @property
    def waiting(self) -> int:
        """The number of waiting tickets."""
        return self._all_waiting

    def ask(self, ticket: Ticket) -> bool:
        """Give the ticket a connection, or let it wait; return whether it has one. Raises Refused."""
        chat = ticket.chat
        if chat is not None:
            queue = self._turns.get(chat)
            if queue is not None:
                if len(queue) >= self.room.waiting.per_chat:
                    raise Refused(Reason.CHAT)
                self._wait(ticket, Phase.TURN)
                queue[ticket] = None
                return False
        if self._can_hold(ticket.tenant, chat is not None):
            self._hold(ticket)
        else:
            self._wait(ticket, Phase.CONNECTION)
            self._enqueue(ticket)
        if chat is not None:
            self._turns[chat] = OrderedDict()
        return ticket.phase is Phase.HOLDING

    def end(self, ticket: Ticket) -> list[Ticket]:
        """Give up the ticket's connection or place in a queue; return the tickets that get a connection as a result."""
        phase, ticket.phase = ticket.phase, Phase.ENDED
        if phase is Phase.HOLDING:
            self._give_back(ticket)
        elif phase is Phase.TURN and ticket.chat is not None:
            self._stop_waiting(ticket)
            del self._turns[ticket.chat][ticket]
            return []
        elif phase is Phase.CONNECTION:
            self._stop_waiting(ticket)
            self._dequeue(ticket)
        else:
            return []
        if ticket.chat is not None:
            self._pass_turn(ticket.chat)
        return list(self._grant()) if self._all_waiting else []

    def _pass_turn(self, chat: UUID) -> None:
        queue = self._turns[chat]
        if queue:
            following, _ = queue.popitem(last=False)
            following.phase = Phase.CONNECTION
            self._enqueue(following)
        else:
            del self._turns[chat]

    def _grant(self) -> Iterator[Ticket]:
        """Give connections to waiting tickets, and yield these tickets, until no other ticket can get one."""
        while (ticket := self._next()) is not None:
            self._dequeue(ticket)
            self._grants += 1
            self._served[ticket.tenant] = self._grants
            self._stop_waiting(ticket)
            self._hold(ticket)
            yield ticket

    def _next(self) -> Ticket | None:
        """Return the ticket that gets the next connection, or None if no waiting ticket can."""
        best: tuple[tuple[int, int, int], Ticket] | None = None
        if self._used < self.room.connections:
            for queues, writes in ((self._reads_waiting, False), (self._writes_waiting, True)):
                for tenant, queue in queues.items():
                    if self._can_hold(tenant, writes):
                        first = next(iter(queue))
                        rank = self._held.get(tenant, 0), self._served[tenant], first.number
                        if best is None or rank < best[0]:
                            best = rank, first
        return best[1] if best else None

    def _can_hold(self, tenant: str | None, writes: bool) -> bool:
        if self._used >= self.room.connections:
            return False
        if tenant is None:
            return True
        if self._held.get(tenant, 0) >= self._per_tenant:
            return False
        if not writes:
            return True
        return self._writes < self._max_writes and self._held_writes.get(tenant, 0) < self._writes_per_tenant

    def _hold(self, ticket: Ticket) -> None:
        tenant = ticket.tenant
        ticket.phase = Phase.HOLDING
        self._used += 1
        self._held[tenant] = self._held.get(tenant, 0) + 1
        if ticket.chat is not None:
            self._writes += 1
            self._held_writes[tenant] = self._held_writes.get(tenant, 0) + 1

    def _give_back(self, ticket: Ticket) -> None:
        self._used -= 1
        _decrease(self._held, ticket.tenant)
        if ticket.chat is not None:
            self._writes -= 1
            _decrease(self._held_writes, ticket.tenant)

    def _wait(self, ticket: Ticket, phase: Phase) -> None:
        tenant = ticket.tenant
        waiting = self._waiting.get(tenant, 0)
        if waiting >= self.room.waiting.per_tenant:
            raise Refused(Reason.TENANT)
        if self._all_waiting >= MAX_WAITING:
            raise Refused(Reason.TOTAL)
        self._numbers += 1
        ticket.number, ticket.phase = self._numbers, phase
        self._waiting[tenant] = waiting + 1
        self._served.setdefault(tenant, self._grants)
        self._all_waiting += 1

    def _stop_waiting(self, ticket: Ticket) -> None:
        self._all_waiting -= 1
        _decrease(self._waiting, ticket.tenant)
        if ticket.tenant not in self._waiting:
            del self._served[ticket.tenant]

    def _queues_of(self, ticket: Ticket) -> OrderedDict[str | None, _Queue]:
        return self._reads_waiting if ticket.chat is None else self._writes_waiting

    def _enqueue(self, ticket: Ticket) -> None:
        self._queues_of(ticket).setdefault(ticket.tenant, OrderedDict())[ticket] = None

    def _dequeue(self, ticket: Ticket) -> None:
        queues = self._queues_of(ticket)
        queue = queues[ticket.tenant]
        del queue[ticket]
        if not queue:
            del queues[ticket.tenant]


def _decrease(counts: dict[str | None, int], tenant: str | None) -> None:
    """Lower the count of a tenant by one, and drop it at zero, so that the tenants of the past use no memory."""
    if counts[tenant] == 1:
        del counts[tenant]
    else:
        counts[tenant] -= 1
