"""Mended memos: databases that earlier forms of a migration left incomplete get an index, and memos their own numbers.

Of memos of a line with the same number, one keeps it: one that is not deleted, and of these the oldest. The others get
the next numbers of the line in story order.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "e3a75c1f9d42"
down_revision: str | Sequence[str] | None = "c9d4b1725ef0"
branch_labels = None
depends_on = None

# Writers lock the row of the current line before they read its numbers, so it is locked before the memos are read.
_LOCK = """
    SELECT 1 FROM chats
    WHERE (chat_key, line_id) IN (SELECT chat_key, line_id FROM memos GROUP BY chat_key, line_id, number
            HAVING count(*) > 1)
        OR memo_number < (SELECT max(number) FROM memos m WHERE m.chat_key = chats.chat_key
            AND m.line_id = chats.line_id)
    ORDER BY chat_key, line_id FOR UPDATE"""

_RENUMBER = """
    UPDATE memos SET number = changed.number
    FROM (
        SELECT chat_key, line_id, memo_id, greatest(highest, memo_number) + row_number() OVER (
            PARTITION BY chat_key, line_id ORDER BY sort_key, numbered.created_at, memo_id) AS number
        FROM (
            SELECT m.*, max(number) OVER (PARTITION BY chat_key, line_id) AS highest, row_number() OVER (
                PARTITION BY chat_key, line_id, number
                ORDER BY deleted_at IS NOT NULL, created_at, sort_key, memo_id) AS nth
            FROM memos m
        ) AS numbered JOIN chats USING (chat_key, line_id)
        WHERE nth > 1
    ) AS changed
    WHERE memos.chat_key = changed.chat_key AND memos.line_id = changed.line_id AND memos.memo_id = changed.memo_id"""

_RAISE = """
    UPDATE chats SET memo_number = highest
    FROM (SELECT chat_key, line_id, max(number) AS highest FROM memos GROUP BY chat_key, line_id) AS numbered
    WHERE chats.chat_key = numbered.chat_key AND chats.line_id = numbered.line_id AND memo_number < highest"""

_REFRESH = """
    UPDATE chats c SET context_cache = jsonb_set(c.context_cache, '{{memos,{part}}}', (
        SELECT jsonb_agg(e.memo || jsonb_build_object('number', coalesce(m.number, (e.memo ->> 'number')::int))
            ORDER BY e.nth)
        FROM jsonb_array_elements(c.context_cache -> 'memos' -> '{part}') WITH ORDINALITY AS e (memo, nth)
        LEFT JOIN memos m ON m.chat_key = c.chat_key AND m.line_id = c.line_id AND m.memo_id = (e.memo ->> 'id')::uuid
    ))
    WHERE EXISTS (
        SELECT FROM jsonb_array_elements(c.context_cache -> 'memos' -> '{part}') AS e (memo)
        JOIN memos m ON m.chat_key = c.chat_key AND m.line_id = c.line_id AND m.memo_id = (e.memo ->> 'id')::uuid
        WHERE m.number <> (e.memo ->> 'number')::int
    )"""


def upgrade() -> None:
    op.execute(_LOCK)
    op.execute(_RENUMBER)
    op.execute(_RAISE)
    for part in ("memos", "pinned"):
        op.execute(_REFRESH.format(part=part))
    # Last, because it keeps writers from the table until the commit, even if the index exists.
    op.execute("CREATE INDEX IF NOT EXISTS ix_memos_pinned ON memos (chat_key, line_id, sort_key) WHERE pinned")


def downgrade() -> None:
    """Keep what was mended: the earlier schema has the index, too, and numbers that differ."""
