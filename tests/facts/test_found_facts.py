"""A search finds the facts that hold: its SQL decides as the function does that decides everywhere else."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from uuid import UUID, uuid4

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.chats.characters import find_meant
from app.facts.layer import LAYER
from app.kit.db import Connection, DbSession
from app.kit.ids import tenant_key, user_key
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.knowledge.known import choose_nearest
from app.knowledge.reading import list_newest
from app.layers.documents import list_documents

TENANT, USER = "x", "mira"
KEYS = ("lamp", "boat")
NAMES = ("Kai", "Ines", "former Kai", "Otto")
"""The names of two characters, a former name of the first, and a name that no character has."""


class Fact(NamedTuple):
    """A statement: its scope, the name of the character in the scope `character`, and whether it is live."""

    rank: int
    name: str
    key: str
    content: str | None
    minute: int
    is_set: bool
    teachings: list[bool]


class State(NamedTuple):
    """What a chat sees: facts, its characters, and the one whose facts count."""

    facts: list[Fact]
    characters: list[dict[str, Any]]
    character: str | None
    has_user: bool


@st.composite
def states(draw: st.DrawFn) -> State:
    """A chat with up to two characters, and many statements about few keys."""
    facts = []
    for _ in range(draw(st.integers(1, 14))):
        rank = draw(st.integers(0, 3))
        facts.append(
            Fact(
                rank,
                draw(st.sampled_from(NAMES)) if rank == 1 else "",
                draw(st.sampled_from(KEYS)),
                draw(st.sampled_from([None, "green", "red"])),
                draw(st.integers(0, 2)),
                draw(st.booleans()),
                draw(st.lists(st.booleans(), max_size=2)),
            )
        )
    kai: dict[str, Any] = {"name": "Kai", "aliases": ["former Kai"], "disabled": draw(st.booleans())}
    ines: dict[str, Any] = {"name": "Ines", "disabled": draw(st.booleans())}
    characters = draw(st.sampled_from([[], [kai], [ines], [kai, ines]]))
    named: str | None = draw(st.sampled_from([None, *(one["name"] for one in characters)]))
    return State(facts, characters, named, draw(st.booleans()))


async def fill(connection: Connection, state: State) -> tuple[UUID, UUID]:
    """Insert the chat and the statements, and return the line."""
    line = (uuid4(), uuid4())
    await connection.execute(
        "INSERT INTO chats (chat_key, line_id, tenant, chat_id, user_id, user_key, characters, line_status,"
        " line_created_at, created_at, last_active_at)"
        " VALUES ($1, $2, $3, 'c', $4, $5, $6::text::jsonb, 'current', now(), now(), now())",
        *line,
        TENANT,
        USER if state.has_user else None,
        user_key(TENANT, USER) if state.has_user else None,
        orjson.dumps(state.characters).decode(),
    )
    owners: Mapping[int, UUID] = {
        0: line[0],
        1: user_key(TENANT, USER),
        2: user_key(TENANT, USER),
        3: tenant_key(TENANT),
    }
    for fact in state.facts:
        statement_id = uuid4()
        await connection.execute(
            "INSERT INTO statements (owner_key, line_id, statement_id, kind, character, key, content, origin,"
            " learnt_at, is_set) VALUES ($1, $2, $3, 'fact', $4, $5, $6, 'model', to_timestamp($7::int * 60), $8)",
            owners[fact.rank],
            UUID(str(NO_LINE if fact.rank else CHAT_WIDE)),
            statement_id,
            fact.name,
            fact.key,
            fact.content,
            fact.minute,
            fact.is_set,
        )
        for hidden in fact.teachings:
            await connection.execute(
                "INSERT INTO teachings (chat_key, line_id, teaching_id, layer, statement_id, wide_key, first_seq,"
                " hidden) VALUES ($1, $2, $3, 'facts', $4, $5, 1, $6)",
                *line,
                uuid4(),
                statement_id,
                owners[fact.rank] if fact.rank else None,
                hidden,
            )
    return line


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(states())
async def test_a_search_finds_the_facts_that_hold(connection: Connection, state: State) -> None:
    writing = connection.transaction()
    await writing.start()
    try:
        line = await fill(connection, state)
        db_session = cast("DbSession", SimpleNamespace(raw=connection))
        held = choose_nearest(
            await list_newest(db_session, line, "fact"), find_meant(state.characters, state.character)
        )
        found = await list_documents(db_session, [LAYER], line, character=state.character)
        assert sorted((one.source, one.text) for one in found) == sorted(
            (f"fact:{one.statement_id}", f"{key}: {one.content}") for key, one in held.items()
        )
    finally:
        await writing.rollback()
