"""A request that waits at the gate and then goes away leaves nothing behind, and what its client sent is kept."""

import asyncio
from uuid import UUID

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from app.kit.errors import TooManyWaiting
from app.kit.gate.admission import Phase, Room, Ticket, WaitLimits
from app.kit.gate.client_watch import MAX_KEPT_BYTES, ClientWatch
from app.kit.gate.connection_gate import TURN_S, ConnectionGate
from tests.slowness import SLOWNESS

PATIENCE_S = 20 * SLOWNESS
CHAT = UUID(int=7)


class Wire:
    """A client's side of a request: it sends messages, and sees what the request received and how it ended."""

    def __init__(self, gate: ConnectionGate, *, reads: bool = False) -> None:
        self._gate = gate
        self._reads = reads
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.received: list[Message] = []
        self.ticket = Ticket("ann", CHAT)

    async def run(self) -> None:
        """Send the request through the middleware to an application that waits at the gate."""
        await ClientWatch(self._serve)({"type": "http"}, self.sent.get, _no_send)

    async def _serve(self, _scope: Scope, receive: Receive, _send: Send) -> None:
        await self._gate.enter(self.ticket)
        while self._reads and not (self.received and self.received[-1]["type"] == "http.disconnect"):
            self.received.append(await receive())


async def _no_send(_message: Message) -> None:
    raise AssertionError


async def until_waiting(gate: ConnectionGate, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while gate.waiting != count:  # noqa: ASYNC110 - the gate has no event for tests
            await asyncio.sleep(0)


@pytest.fixture
def gate() -> ConnectionGate:
    return ConnectionGate(Room(4, WaitLimits(per_chat=2)))


@pytest.fixture
async def first(gate: ConnectionGate) -> Ticket:
    """The request that has the turn of the chat."""
    ticket = Ticket("ann", CHAT)
    await gate.enter(ticket)
    return ticket


async def test_a_client_that_disconnects_gives_back_its_place(gate: ConnectionGate, first: Ticket) -> None:
    gone, following = Wire(gate), Wire(gate)
    leaving, staying = asyncio.create_task(gone.run()), asyncio.create_task(following.run())
    await until_waiting(gate, 2)
    gone.sent.put_nowait({"type": "http.request", "body": b""})
    gone.sent.put_nowait({"type": "http.disconnect"})
    with pytest.raises(ClientDisconnect):
        await leaving
    assert gate.waiting == 1
    assert gate.counts.refusals["disconnect"] == 1
    gate.leave(first)
    await staying


async def test_a_cancelled_request_gives_back_its_place(gate: ConnectionGate, first: Ticket) -> None:
    waiting = asyncio.create_task(gate.enter(Ticket("ann", CHAT)))
    await until_waiting(gate, 1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert gate.waiting == 0
    gate.leave(first)
    await gate.enter(Ticket("ann", CHAT))


async def test_a_request_cancelled_at_its_turn_frees_it_for_the_next(gate: ConnectionGate, first: Ticket) -> None:
    waiting = [asyncio.create_task(gate.enter(Ticket("ann", CHAT))) for _ in range(2)]
    await until_waiting(gate, 2)
    gate.leave(first)
    waiting[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    async with asyncio.timeout(PATIENCE_S):
        await waiting[1]


async def test_a_turn_that_comes_as_the_time_ends_is_taken(gate: ConnectionGate, first: Ticket) -> None:
    following = Wire(gate)
    waiting = asyncio.create_task(following.run())
    await asyncio.wait([waiting], timeout=TURN_S)
    async with asyncio.timeout(PATIENCE_S):
        while not waiting.cancelling():  # noqa: ASYNC110 - its time has just ended, and it has not run since
            await asyncio.sleep(0)
        gate.leave(first)
        await waiting
    assert following.ticket.phase is Phase.HOLDING
    assert gate.counts.refusals["timeout"] == 0


async def test_a_body_sent_while_the_request_waits_is_kept(gate: ConnectionGate, first: Ticket) -> None:
    wire = Wire(gate, reads=True)
    serving = asyncio.create_task(wire.run())
    await until_waiting(gate, 1)
    messages: list[Message] = [
        {"type": "http.request", "body": b"a" * MAX_KEPT_BYTES, "more_body": True},
        {"type": "http.request", "body": b"b", "more_body": False},
    ]
    for message in messages:
        wire.sent.put_nowait(message)
    while wire.sent.qsize() > 1:  # noqa: ASYNC110 - the watch stops after the first one
        await asyncio.sleep(0)
    gate.leave(first)
    wire.sent.put_nowait({"type": "http.disconnect"})
    async with asyncio.timeout(PATIENCE_S):
        await serving
    assert wire.received == [*messages, {"type": "http.disconnect"}]


async def test_a_refusal_leaves_no_trace(gate: ConnectionGate, first: Ticket) -> None:
    waiting = [asyncio.create_task(gate.enter(Ticket("ann", CHAT))) for _ in range(2)]
    await until_waiting(gate, 2)
    refused = Ticket("ann", CHAT)
    with pytest.raises(TooManyWaiting):
        await gate.enter(refused)
    gate.leave(refused)
    assert gate.waiting == 2
    assert gate.counts.refusals["chat"] == 1
    gate.leave(first)
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert gate.counts.waits == 2
    waiting[1].cancel()
