"""No statistics of words: PostgreSQL keeps no samples of what was said, which erasing a chat would not delete."""

from collections.abc import Sequence

from alembic import op

revision: str = "c9d4b1725ef0"
down_revision: str | Sequence[str] | None = "a3c6f0e81b27"
branch_labels = None
depends_on = None

_COLUMNS = {
    "bindings": ("character",),
    "chats": (
        "characters",
        "user_persona",
        "system_prompt",
        "settings",
        "metadata",
        "last_cut",
        "cursors",
        "checkpoint",
        "context_cache",
        "changed",
        "user_name",
    ),
    "diary_entries": ("character", "content", "filters"),
    "memos": ("highlights", "text", "filters"),
    "messages": ("name", "content", "tool_calls", "metadata"),
    "narrative_versions": ("subject", "text", "kept_text", "filters"),
    "revisions": ("name", "content"),
    "scenes": ("reason", "title", "recap", "filters"),
    "swipes": ("content",),
    "work": ("key", "error", "payload", "refusals", "progress"),
}

# ANALYZE skips such a column, so the samples that it took before would stay. PostgreSQL 18 can delete them.
_CLEAR = """
    DO $$ BEGIN
        IF to_regproc('pg_catalog.pg_clear_attribute_stats') IS NOT NULL THEN
            PERFORM pg_catalog.pg_clear_attribute_stats(current_schema()::text, '{table}', '{column}', false);
        END IF;
    END $$"""


def upgrade() -> None:
    for table, columns in _COLUMNS.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
            op.execute(_CLEAR.format(table=table, column=column))


def downgrade() -> None:
    for table, columns in _COLUMNS.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS -1")
