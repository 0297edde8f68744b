"""The stale rows of a layer are found by the index of stale rows, on a line with many rows.

In a database of their own: without statistics, every index that begins with the line seems to lead to one row, and the
planner takes the smallest one, which rows of other tests could change.
"""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import ColumnElement
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import InstrumentedAttribute

from app.chats.eligibility import Filters
from app.chats.head import Head
from app.chats.settings import effective
from app.diary.models import DiaryEntry
from app.kit.db import Database
from app.layers.derived import list_unscheduled, select_unscheduled
from app.memos.models import Memo
from app.scenes.models import Scene
from tests.conftest import NOON, sqlalchemy_url

# Of 2,000 rows every 400th is stale.
_MANY = "FROM generate_series(1, 2000) AS n"
_HASHES = "'a', CASE WHEN n % 400 = 0 THEN 'b'::bytea ELSE 'a' END"
_INSERT = {
    "memos": f"""
        INSERT INTO memos (chat_key, line_id, memo_id, number, sort_key, origin, first_seq, last_seq, created_at,
            source_hash, current_hash)
        SELECT $1, $2, gen_random_uuid(), n, 2 * n, 'model', n, n, now(), {_HASHES} {_MANY}""",
    "diary": f"""
        INSERT INTO diary_entries (chat_key, line_id, entry_id, character, number, at_seq, origin, content, first_seq,
            last_seq, dated_at, created_at, source_hash, current_hash)
        SELECT $1, $2, gen_random_uuid(), 'Kai', n, n, 'model', 'x', n, n, now(), now(), {_HASHES} {_MANY}""",
    "scenes": f"""
        INSERT INTO scenes (chat_key, line_id, scene_id, number, first_seq, last_seq, closed_by, origin, filters,
            truncated, created_at, source_hash, current_hash)
        SELECT $1, $2, gen_random_uuid(), n, n, n, 'model', 'model', '{{}}', false, now(), {_HASHES}
        {_MANY}""",
}


@pytest.fixture
async def database(fresh_database_url: str) -> AsyncIterator[Database]:
    """A database without any other rows, and without statistics."""
    opened = Database(sqlalchemy_url(fresh_database_url), pool_size=1, followers={})
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("layer", "key_column", "condition", "index"),
    [
        ("memos", Memo.memo_id, Memo.deleted_at.is_(None), "ix_memos_stale"),
        ("diary", DiaryEntry.entry_id, DiaryEntry.deleted_at.is_(None), " on diary_entries"),
        ("scenes", Scene.scene_id, Scene.lifted_at.is_(None), "ix_scenes_stale"),
    ],
)
async def test_stale_rows_are_found_by_an_index(
    database: Database, layer: str, key_column: InstrumentedAttribute[Any], condition: ColumnElement[bool], index: str
) -> None:
    head = Head(uuid4(), uuid4(), "acme", effective({}), Filters(), last_active_at=NOON)
    async with database.unit_of_work() as db_session:
        await db_session.raw.execute(_INSERT[layer], *head.line)
        found = await list_unscheduled(db_session, head, layer, key_column, prefix="entry:", condition=condition)
        assert sorted(item.at_seq for item in found) == [400, 800, 1200, 1600, 2000]
        query = select_unscheduled(head, layer, key_column, prefix="entry:", condition=condition)
        text = str(query.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}))  # type: ignore[no-untyped-call]
        plan = "\n".join(row[0] for row in await db_session.raw.fetch(f"EXPLAIN (ANALYZE) {text}"))
    assert index in plan  # how the few rows of work are read is up to the planner
    assert f"Seq Scan on {key_column.class_.__tablename__}" not in plan
