"""A copied line is the line: every table, every row, every column, by the database's own catalog."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import Column, MetaData, Uuid
from sqlalchemy import Table as CoreTable

from app.chats.heads import lock_line
from app.dispatcher import Dispatcher
from app.kit import work_queue
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key, uuid7
from app.kit.owners import NO_LINE, Owner
from app.kit.work_queue import NewWork
from app.lines.line_copy import Line, copy_line, list_copied, write_copy
from tests.book import change
from tests.chats.rich import Rows, list_tables, make_rich_chat, rows_of
from tests.conftest import NOON
from tests.layers.sample import Row
from tests.layers.samples import SAMPLES
from tests.talk import get, ok, put

ITS_OWN: dict[str, set[str]] = {
    "chats": {
        "line_status",
        "checkpoint",
        "parent_line_id",
        "line_created_at",
        "replaceable",
        "replaced_at",
        "revision",
        "base_revision",
        "changed",
    },
    "work": {"work_id", "attempts", "lease", "leased_until"},
}
"""What a copy does not have from its source, besides the line: what it is called, who works on it, and how often."""

OF_THE_COPY: dict[str, Any] = {
    "line_status": "checkpoint",
    "checkpoint": "dusk",
    "parent_line_id": UUID(int=1),
    "line_created_at": NOON,
}


@pytest.fixture
async def source(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> tuple[UUID, UUID]:
    """The line of a chat that has something everywhere."""
    await make_rich_chat(api, dispatcher, clock, database, tenant)
    await change(database, tenant, "chats", "cut_waits = true")
    await change(database, tenant, "work", "transient = true")
    return chat_key(tenant, "c"), UUID((await get(api, ""))["line"])


async def test_the_copied_chat_has_a_value_in_every_column(database: Database, source: Line) -> None:
    """Or a column that is forgotten would not be missed."""
    rows = await rows_of(database, *source)
    without_rows = [table for table in rows if not rows[table]]
    assert without_rows == [], f"`rich` of the layer's sample makes no row in {without_rows}"
    empty = {(table, name) for table in rows for name in rows[table][0] if not any(row[name] for row in rows[table])}
    assert empty == {
        ("chats", "checkpoint"),  # only a copy has these two
        ("chats", "parent_line_id"),
        ("chats", "replaced_at"),  # only a line that a re-import replaced has it
        ("work", "user_id"),  # only the work of a user has it
    }, "`rich` of the layer's sample leaves a column empty in all rows"


async def test_every_table_that_has_lines_is_known_to_the_copy(database: Database) -> None:
    assert list(await list_tables(database)) == sorted(table.name for table in list_copied())


async def test_a_copy_has_every_row_with_every_column(database: Database, source: Line) -> None:
    before = await rows_of(database, *source)
    target = await _copy(database, source)
    copied = await rows_of(database, *target)
    assert _shared(copied) == _shared(before)
    assert await rows_of(database, *source) == before
    (chat,) = copied["chats"]
    told = {name: chat[name] for name in OF_THE_COPY} | {
        "line_created_at": datetime.fromisoformat(chat["line_created_at"])
    }
    assert told == OF_THE_COPY | {"parent_line_id": str(UUID(int=1))}


async def test_a_copy_in_another_chat_differs_by_the_chat_alone(database: Database, source: Line, tenant: str) -> None:
    target = (chat_key(tenant, "d"), uuid7())
    async with database.unit_of_work() as db_session:
        await copy_line(db_session, source, target, until_seq=None, chat_values={"chat_id": "d"})
    copied, before = await rows_of(database, target[0]), await rows_of(database, *source)
    assert (copied["chats"][0].pop("chat_id"), before["chats"][0].pop("chat_id")) == ("d", "c")
    assert _shared(copied) == _shared(before)


async def test_copied_work_has_its_own_id_and_no_lease(database: Database, source: Line) -> None:
    target = await _copy(database, source)
    mine, copied = [(await rows_of(database, *line))["work"] for line in (source, target)]
    assert any(row["lease"] for row in mine)
    assert [(row["lease"], row["leased_until"]) for row in copied] == [(None, None)] * len(mine)
    assert not {row["work_id"] for row in mine} & {row["work_id"] for row in copied}
    # In the order in which it became due: that is in the first half of an id.
    assert sorted(row["work_id"][:14] for row in mine) == sorted(row["work_id"][:14] for row in copied)


async def test_attempts_are_copied_only_with_what_has_failed(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """A copy is tried as often as its original; what has failed for good stays failed, with its attempts."""
    source = (chat_key(tenant, "c"), UUID((await put(api))["line"]))
    owner = Owner.of_line(tenant, *source)
    async with database.unit_of_work() as db_session:
        await lock_line(db_session, *source)
        items = [NewWork(key) for key in ("claimed", "failed for good", "lapsed", "retried")]
        await work_queue.schedule(db_session, owner, "memos", items, now=clock(), settle_s=0)
        for key, values in {
            "claimed": "attempts = 2, lease = gen_random_uuid(), leased_until = now() + interval '50 seconds'",
            "failed for good": "attempts = 6, error = 'no', failed_at = now()",
            "lapsed": "attempts = 3, lease = gen_random_uuid(), leased_until = now() - interval '1 hour'",
            "retried": "attempts = 5, error = 'busy', transient = true",
        }.items():
            await db_session.raw.execute(f"UPDATE work SET {values} WHERE owner_key = $1 AND key = $2", owner.key, key)
    copied = (await rows_of(database, *await _copy(database, source)))["work"]
    assert {row["key"]: row["attempts"] for row in copied} == {
        "claimed": 0,
        "failed for good": 6,
        "lapsed": 0,
        "retried": 0,
    }
    assert {row["key"]: row["error"] for row in copied}["retried"] == "busy"


async def test_work_of_a_user_is_not_copied_with_a_line(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """Not even where user and chat have the same key."""
    source = (chat_key(tenant, "c"), UUID((await put(api))["line"]))
    owners = (Owner.of_line(tenant, *source), Owner.of_user(tenant, "c"), Owner.of_tenant(tenant))
    for owner in owners:
        async with database.unit_of_work() as db_session:
            if owner.is_line:
                await lock_line(db_session, *owner.line)
            await work_queue.schedule(db_session, owner, "memos", [NewWork("1")], now=clock(), settle_s=0)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}), 201)
    ok(await api.post("/v1/chats/c/checkpoints/dusk/restore"), 201)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d"}), 201)
    async with database.raw() as connection:
        counted = await connection.fetch(
            "SELECT user_id, line_id = $2 AS own, count(*) FROM work WHERE tenant = $1 GROUP BY 1, 2", tenant, NO_LINE
        )
    assert {(row["user_id"], row["own"]): row["count"] for row in counted} == {
        (None, False): 4,  # of the line, the checkpoint, the restored line and the fork
        ("c", True): 1,
        (None, True): 1,
    }


async def test_a_copy_includes_only_rows_that_begin_by_its_last_seq(database: Database, source: Line) -> None:
    before = await rows_of(database, *source)
    for until_seq in (0, 1, 12, 20, 36, 43):
        values = {"head_seq": until_seq, "anchor_seq": 1, "checkpoint": f"until {until_seq}"}
        target = await _copy(database, source, until_seq, **values)
        copied = await rows_of(database, *target)
        for table, begins in BEGINNINGS.items():
            kept = [row for row in _stripped(table, before) if begins(row) <= until_seq]
            assert _stripped(table, copied) == kept, (until_seq, table)
        assert copied.keys() - BEGINNINGS.keys() == {"chats"}
        assert len(copied["chats"]) == 1
        assert await rows_of(database, *source) == before


BEGINNINGS: dict[str, Callable[[Row], float]] = {
    "messages": lambda row: row["seq"],
    "swipes": lambda row: row["seq"],
    "revisions": lambda row: row["seq"],
    "source_lines": lambda row: row["seq"],
    "work": lambda row: row["at_seq"],
    "narrative_versions": lambda row: row["begins_seq"],  # these are of several layers
    "bindings": lambda row: row["at_seq"],
    "teachings": lambda row: row["first_seq"],
} | {table: begins for sample in SAMPLES.values() for table, begins in sample.begins.items()}
"""Return the seq at which a row begins, without the SQL of the table's `info["begins"]`."""


@pytest.mark.parametrize("cut", [False, True])
def test_a_table_without_a_copy_rule_raises(cut: bool) -> None:
    key = [Column(name, Uuid, primary_key=True) for name in ("chat_key", "line_id")]
    with pytest.raises(LookupError, match="forgotten"):
        write_copy(CoreTable("forgotten", MetaData(), *key), shortened=cut)


async def _copy(database: Database, source: Line, until_seq: int | None = None, **values: Any) -> Line:
    target = (source[0], uuid7())
    async with database.unit_of_work() as db_session:
        await copy_line(db_session, source, target, until_seq=until_seq, chat_values=OF_THE_COPY | values)
    return target


def _shared(rows: Rows) -> Rows:
    """The rows without what is a line's own, in an order that does not depend on it."""
    return {table: _stripped(table, rows) for table in rows}


def _stripped(table: str, rows: Rows) -> list[dict[str, Any]]:
    own = {"chat_key", "owner_key", "line_id"} | ITS_OWN.get(table, set())
    return sorted(({name: row[name] for name in row if name not in own} for row in rows[table]), key=repr)
