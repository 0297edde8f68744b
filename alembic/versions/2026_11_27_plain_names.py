"""Plain names of columns."""

from collections.abc import Sequence

from alembic import op

revision: str = "c7e41d90b5f2"
down_revision: str | Sequence[str] | None = "5a90e7d3c241"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("chats", "standing", "line_status"),
    ("chats", "line_made_at", "line_created_at"),
    ("messages", "kept_shown", "visibility_pinned"),
    ("memos", "made_at", "generated_at"),
    ("scenes", "made_at", "generated_at"),
    ("narrative_versions", "first_place", "first_unit"),
    ("narrative_versions", "last_place", "last_unit"),
)


def upgrade() -> None:
    for table, former, name in _COLUMNS:
        _rename(table, former, name)
    op.execute("ALTER TABLE chats RENAME CONSTRAINT ck_chats_standing TO ck_chats_line_status")
    op.execute("ALTER INDEX ix_narrative_versions_place RENAME TO ix_narrative_versions_unit")


def downgrade() -> None:
    op.execute("ALTER INDEX ix_narrative_versions_unit RENAME TO ix_narrative_versions_place")
    op.execute("ALTER TABLE chats RENAME CONSTRAINT ck_chats_line_status TO ck_chats_standing")
    for table, former, name in _COLUMNS:
        _rename(table, name, former)


def _rename(table: str, former: str, name: str) -> None:
    """Rename a column and, from PostgreSQL 18 on, its NOT NULL constraint, if it has one."""
    op.alter_column(table, former, new_column_name=name)
    op.execute(
        f"""
        DO $$ BEGIN
            ALTER TABLE {table} RENAME CONSTRAINT {table}_{former}_not_null TO {table}_{name}_not_null;
        EXCEPTION WHEN undefined_object THEN NULL;
        END $$
        """
    )
