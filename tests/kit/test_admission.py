"""Who gets the next connection: no limit is ever passed, turns are FIFO, and nothing that waits is forgotten."""

from collections import Counter
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from app.kit.gate.admission import Admission, Phase, Reason, Refused, Room, Ticket, WaitLimits

TENANTS = ["ann", "bob", "eve", None]


def chat_of(tenant: str | None, number: int) -> UUID:
    return uuid5(UUID(int=0), f"{tenant} {number}")


class Requests(RuleBasedStateMachine):
    """Requests that arrive, end and go away in any order."""

    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.room = Room(5, WaitLimits(per_chat=3, per_tenant=6))
        self.admission = Admission(self.room)
        self.alive: list[Ticket] = []
        self.arrivals: dict[UUID, list[Ticket]] = {}

    @rule(target=tickets, tenant=st.sampled_from(TENANTS), chat=st.sampled_from([None, 1, 2]))
    def arrive(self, tenant: str | None, chat: int | None) -> Ticket:
        ticket = Ticket(tenant, None if chat is None else chat_of(tenant, chat))
        try:
            granted = self.admission.ask(ticket)
        except Refused as refusal:
            self._check_refusal(ticket, refusal.reason)
            return ticket
        assert granted == (ticket.phase is Phase.HOLDING)
        self.alive.append(ticket)
        if ticket.chat is not None:
            self.arrivals.setdefault(ticket.chat, []).append(ticket)
        return ticket

    @rule(ticket=consumes(tickets))
    def end(self, ticket: Ticket) -> None:
        """The request ends, or its client goes away while it waits."""
        before = {other for other in self.alive if other.phase is Phase.HOLDING}
        granted = self.admission.end(ticket)
        if ticket in self.alive:
            self.alive.remove(ticket)
            if ticket.chat is not None:
                self.arrivals[ticket.chat].remove(ticket)
        assert set(granted) == {other for other in self.alive if other.phase is Phase.HOLDING} - before
        assert self.admission.end(ticket) == []

    @invariant()
    def no_limit_is_passed(self) -> None:
        holding = [ticket for ticket in self.alive if ticket.phase is Phase.HOLDING]
        assert len(holding) == self.admission.used <= self.room.connections
        writing = [ticket for ticket in holding if ticket.chat is not None]
        assert len({ticket.chat for ticket in writing}) == len(writing)
        limited = [ticket for ticket in writing if ticket.tenant is not None]
        assert all(count <= self.room.writes_per_tenant for count in _tenants(limited).values())
        assert all(count <= self.room.per_tenant for tenant, count in _tenants(holding).items() if tenant is not None)

    @invariant()
    def turns_are_first_come_first_served(self) -> None:
        for arrived in self.arrivals.values():
            assert all(ticket.phase is Phase.TURN for ticket in arrived[1:])
            assert not arrived or arrived[0].phase in {Phase.CONNECTION, Phase.HOLDING}

    @invariant()
    def no_connection_is_free_for_one_that_waits(self) -> None:
        holding = [ticket for ticket in self.alive if ticket.phase is Phase.HOLDING]
        writing = [ticket for ticket in holding if ticket.chat is not None]
        for ticket in self.alive:
            if ticket.phase is Phase.CONNECTION and len(holding) < self.room.connections:
                assert ticket.tenant is not None
                reached = _tenants(holding)[ticket.tenant] >= self.room.per_tenant
                if ticket.chat is not None:
                    reached |= len(writing) >= self.room.writes
                    reached |= _tenants(writing)[ticket.tenant] >= self.room.writes_per_tenant
                assert reached

    @invariant()
    def waiting_is_counted(self) -> None:
        waiting = [ticket for ticket in self.alive if ticket.phase is not Phase.HOLDING]
        assert len(waiting) == self.admission.waiting
        assert all(count <= self.room.waiting.per_tenant for count in _tenants(waiting).values())

    def teardown(self) -> None:
        """When all requests have ended, one by one, each of them held a connection, and nothing is left."""
        while holding := [ticket for ticket in self.alive if ticket.phase is Phase.HOLDING]:
            self.end(holding[0])
        assert self.alive == []
        kept = {"_grants", "_numbers"}
        left = {name: value for name, value in vars(self.admission).items() if name not in kept}
        assert left == {name: value for name, value in vars(Admission(self.room)).items() if name not in kept}

    def _check_refusal(self, ticket: Ticket, reason: Reason) -> None:
        waiting = [other for other in self.alive if other.phase is not Phase.HOLDING]
        if reason is Reason.CHAT:
            turns = [other for other in waiting if other.phase is Phase.TURN and other.chat == ticket.chat]
            assert len(turns) == self.room.waiting.per_chat
        else:
            assert reason is Reason.TENANT
            assert _tenants(waiting)[ticket.tenant] == self.room.waiting.per_tenant


TestRequests = Requests.TestCase


def _tenants(tickets: list[Ticket]) -> Counter[str | None]:
    return Counter(ticket.tenant for ticket in tickets)


def _ask(admission: Admission, tenant: str | None, chat: int | None = None) -> Ticket:
    ticket = Ticket(tenant, None if chat is None else chat_of(tenant, chat))
    admission.ask(ticket)
    return ticket


@given(st.integers(1, 60))
def test_some_connections_are_for_others_and_for_reads(connections: int) -> None:
    room = Room(connections)
    assert 1 <= room.writes_per_tenant <= room.writes <= room.connections
    assert room.writes < connections or connections == 1
    assert room.per_tenant < connections or connections < 4


def test_a_read_finds_a_connection_beside_locked_chats() -> None:
    admission = Admission(Room(4))
    for tenant in ("ann", "bob", "eve"):
        for chat in range(80):
            _ask(admission, tenant, chat)
    assert _ask(admission, "dan").phase is Phase.HOLDING


def test_a_tenant_finds_a_connection_beside_a_flood() -> None:
    admission = Admission(Room(4))
    for _ in range(80):
        _ask(admission, "ann")
    assert _ask(admission, "bob").phase is Phase.HOLDING


def test_tenants_are_served_in_turn() -> None:
    admission = Admission(Room(1))
    first = _ask(admission, "ann")
    waiting = [_ask(admission, tenant) for tenant in ("ann", "ann", "ann", "bob", "bob", "eve")]
    served, ended = [], first
    for _ in waiting:
        (ended,) = admission.end(ended)
        served.append(ended.tenant)
    assert served == ["ann", "bob", "eve", "ann", "bob", "ann"]


def test_reads_overtake_writes_that_wait_at_a_limit() -> None:
    admission = Admission(Room(4))
    holding = [_ask(admission, "ann", 1), _ask(admission, "ann", 2), _ask(admission, "ann")]
    write, read = _ask(admission, "ann", 3), _ask(admission, "ann")
    assert admission.end(holding[2]) == [read]
    assert admission.end(read) == []
    assert admission.end(holding[0]) == [write]


def test_too_many_that_wait_for_a_chat_are_refused() -> None:
    admission = Admission(Room(2, WaitLimits(per_chat=2, per_tenant=3)))
    _, first, _ = (_ask(admission, "ann", 1) for _ in range(3))
    with pytest.raises(Refused) as refusal:
        _ask(admission, "ann", 1)
    assert refusal.value.reason is Reason.CHAT
    admission.end(first)
    assert _ask(admission, "ann", 1).phase is Phase.TURN


@pytest.mark.parametrize("chat", [1, 2, None])
def test_too_many_that_wait_of_a_tenant_are_refused(chat: int | None) -> None:
    admission = Admission(Room(2, WaitLimits(per_chat=9, per_tenant=3)))
    held = [_ask(admission, "ann", 1), _ask(admission, "ann")]
    for waiting in (1, 2, None):
        _ask(admission, "ann", waiting)
    with pytest.raises(Refused) as refusal:
        _ask(admission, "ann", chat)
    assert refusal.value.reason is Reason.TENANT
    assert _ask(admission, "bob", 1).phase is Phase.CONNECTION
    admission.end(held[1])
    assert _ask(admission, "ann").phase is Phase.CONNECTION
