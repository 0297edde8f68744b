"""The rules of the log are the same in SQL as in Python."""

from dataclasses import dataclass, replace
from itertools import product

import orjson

from app.chats.eligibility import Filters, is_eligible, is_sent
from app.kit.db import Connection
from app.messages.rules import IS_NOT_DELETED, IS_SENT, SPEAKS, qualify, write_is_eligible


@dataclass(frozen=True)
class Marks:
    """The fields of a message on which the rules depend."""

    role: str
    name: str | None
    kind: str | None
    tokens: int
    blank: bool
    excluded: bool
    hidden_by: str | None
    deleted: bool


PLAIN = Marks("assistant", "Kai", None, 3, blank=False, excluded=False, hidden_by=None, deleted=False)
MESSAGES = [
    Marks(role, name, kind, tokens, blank, excluded, hidden_by, deleted)
    for role, name, kind, tokens, blank, excluded, hidden_by, deleted in product(
        ("user", "assistant", "system", "narrator", "tool"),
        (None, "Kai"),
        (None, "thought"),
        (0, 1, 3),
        (False, True),
        (False, True),
        (None, "user", "scenes"),
        (False, True),
    )
]
FILTERS = [
    Filters(),
    Filters(include_user=False),
    Filters(include_system=True, include_narrator=False),
    Filters(min_tokens=2, disabled=("Kai",)),
]

FROM = """
    FROM json_to_recordset($1::json) AS m (role text, name text, kind text, tokens int, blank boolean,
        excluded boolean, hidden_by text, deleted_at timestamptz)"""


async def select(connection: Connection, rule: str) -> list[bool]:
    rows = [vars(one) | {"deleted_at": "2026-03-01T12:00:00Z" if one.deleted else None} for one in MESSAGES]
    found = await connection.fetch(f"SELECT {rule} AS applies {FROM}", orjson.dumps(rows).decode())
    return [row["applies"] for row in found]


async def test_sql_and_python_find_the_same_eligible(connection: Connection) -> None:
    for filters in FILTERS:
        stored = orjson.dumps(filters.to_json()).decode()
        rule = write_is_eligible("m", f"'{stored}'::jsonb")
        expected = [is_eligible(message, filters) for message in MESSAGES]
        assert any(expected)
        assert await select(connection, rule) == expected, filters


async def test_sql_and_python_send_the_same(connection: Connection) -> None:
    assert await select(connection, IS_SENT) == [is_sent(message) for message in MESSAGES]


async def test_thoughts_and_deleted_messages_do_not_speak(connection: Connection) -> None:
    thought, deleted = replace(PLAIN, kind="thought"), replace(PLAIN, deleted=True)
    speaks = dict(zip(MESSAGES, await select(connection, SPEAKS), strict=True))
    assert (speaks[PLAIN], speaks[thought], speaks[deleted]) == (True, False, False)


def test_a_rule_gets_the_alias_before_each_column() -> None:
    assert qualify(IS_NOT_DELETED, "m") == "m.deleted_at IS NULL"
    assert (
        qualify(SPEAKS, "m")
        == "m.deleted_at IS NULL AND (m.role = 'user' OR (m.role = 'assistant' AND m.kind IS NULL))"
    )
    assert "->> 'min_tokens'" in write_is_eligible("m", "b.filters")
