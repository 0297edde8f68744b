"""Which memories hold, in which order, and which are in the archive, against a slow reference."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from uuid import UUID, uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.kit.db import Connection, DbSession
from app.knowledge.scopes import ScopeKey
from app.memories.decay import order_key
from app.memories.queries import Choice, Keeping, list_of_scope
from tests.conftest import NOON

KEYS = [UUID(int=number) for number in (1, 2, 3, 4)]
IMPORTANCES = (0.0, 0.25, 0.5, 1.0)
ARCHIVED = (None, None, None, True, False)

HALF_LIFE_DAYS = 7.0


class Text(NamedTuple):
    """A statement, and of each of its teachings: whether it is on a current line, whether it is hidden, and how many
    days ago its message was sent, if that is recorded.
    """

    key: UUID
    statement_id: UUID
    content: str | None
    importance: float
    pinned: bool
    archived: bool | None
    age_days: int
    is_set: bool
    teachings: list[tuple[bool, bool, int | None]]

    @property
    def is_live(self) -> bool:
        return self.is_set or any(current and not hidden for current, hidden, _ in self.teachings)

    @property
    def said_days(self) -> int:
        """How many days ago its newest live message was sent, or it was written."""
        ages = [self.age_days] if self.is_set else []
        for current, hidden, days in self.teachings:
            if current and not hidden:
                ages.append(self.age_days if days is None else days)
        return min(ages)


@st.composite
def texts(draw: st.DrawFn) -> list[Text]:
    """Statements of a few memories, whose pins and archive are equal in all statements of each."""
    pinned = {key: draw(st.booleans()) for key in KEYS}
    archived = {key: draw(st.sampled_from(ARCHIVED)) for key in KEYS}
    found = []
    for number in range(draw(st.integers(0, 10))):
        key = draw(st.sampled_from(KEYS))
        found.append(
            Text(
                key,
                UUID(int=100 + number),
                draw(st.sampled_from([None, "green", "red"])),
                draw(st.sampled_from(IMPORTANCES)),
                pinned[key],
                archived[key],
                draw(st.integers(0, 30)),
                draw(st.sampled_from([False, False, True])),
                draw(
                    st.lists(
                        st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, *range(0, 60, 7)])), max_size=3
                    )
                ),
            )
        )
    return found


def list_slowly(found: list[Text], most: int, floor: float | None) -> list[tuple[UUID, UUID, bool]]:
    """(memory, statement, archived) of each memory that holds, the strongest first."""
    held = []
    for key in KEYS:
        live = [one for one in found if one.key == key and one.is_live]
        newest = max(live, key=lambda one: (-one.age_days, one.statement_id), default=None)
        if newest is not None and newest.content is not None:
            held.append(newest)
    held.sort(key=lambda one: (strength_of(one), one.key), reverse=True)
    kept = [one for one in held if one.archived is not True]
    safe = [one for one in kept if one.pinned or one.archived is False]
    room = max(most - len(safe), 0)
    others = [one for one in kept if one not in safe][:room]
    staying = safe + [one for one in others if floor is None or strength_of(one) >= floor]
    return [(one.key, one.statement_id, one not in staying) for one in held]


def strength_of(one: Text) -> float:
    return order_key(one.importance, NOON - timedelta(days=one.said_days), half_life_days=HALF_LIFE_DAYS)


async def fill(connection: Connection, scope: ScopeKey, found: list[Text]) -> None:
    """Insert the statements, and for each kind of teaching a chat with a current and a former line."""
    chat_key, lines = uuid4(), {True: uuid4(), False: uuid4()}
    for current, line_id in lines.items():
        await connection.execute(
            "INSERT INTO chats (chat_key, line_id, tenant, chat_id, line_status, line_created_at, created_at,"
            " last_active_at) VALUES ($1, $2, 'x', 'x', $3, now(), now(), now())",
            chat_key,
            line_id,
            "current" if current else "abandoned",
        )
    for one in found:
        await connection.execute(
            "INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, origin, learnt_at,"
            " importance, pinned, archived, is_set)"
            " VALUES ($1, $2, $3, 'memory', $4, $5, 'model', $6, $7, $8, $9, $10)",
            scope.owner_key,
            scope.line_id,
            one.statement_id,
            str(one.key),
            one.content,
            NOON - timedelta(days=one.age_days),
            one.importance,
            one.pinned,
            one.archived,
            one.is_set,
        )
        for current, hidden, said_days in one.teachings:
            await connection.execute(
                "INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq,"
                " hidden, said_at) VALUES ($1, $2, $3, 'memories', $4, $5, 1, $6, $7)",
                chat_key,
                lines[current],
                uuid4(),
                one.statement_id,
                scope.owner_key,
                hidden,
                None if said_days is None else NOON - timedelta(days=said_days),
            )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(texts(), st.integers(1, 4), st.sampled_from([None, 0.1, 0.3]))
async def test_memories_hold_as_the_reference_says(
    connection: Connection, found: list[Text], most: int, forget_below: float | None
) -> None:
    scope = ScopeKey("user", "x", uuid4())
    floor = order_key(forget_below, NOON, half_life_days=HALF_LIFE_DAYS) if forget_below else None
    keeping = Keeping(half_life_days=HALF_LIFE_DAYS, max_memories=most, least_order_key=floor)
    writing = connection.transaction()
    await writing.start()
    try:
        await fill(connection, scope, found)
        db_session = cast("DbSession", SimpleNamespace(raw=connection))

        async def listed(**choice: Any) -> list[tuple[UUID, UUID, bool]]:
            memories = await list_of_scope(db_session, scope, keeping, Choice(**choice))
            return [(one.memory_id, one.statement_id, one.archived) for one in memories]

        expected = list_slowly(found, most, floor)
        assert await listed() == expected
        for archived in (True, False):
            assert await listed(archived=archived) == [one for one in expected if one[2] is archived]
        for key, statement_id, archived in expected:
            assert await listed(memory_id=key) == [(key, statement_id, archived)]
    finally:
        await writing.rollback()
