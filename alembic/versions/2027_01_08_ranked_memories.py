"""Indexes that lead to the less important memories of a scope by importance, and to its newest important one."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "5d0c83f6a21b"
down_revision: str | Sequence[str] | None = "3e8b52c7d094"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_statements_ranked",
        "statements",
        [
            "owner_key",
            "line_id",
            "character",
            sa.text("importance DESC"),
            sa.text("learnt_at DESC"),
            sa.text("statement_id DESC"),
        ],
        postgresql_where=sa.text(
            "kind = 'memory' AND importance < 0.7 AND origin <> 'extractive' AND archived IS NOT TRUE"
        ),
    )
    op.create_index(
        "ix_statements_arrival",
        "statements",
        ["owner_key", "line_id", "character", sa.text("statement_id DESC")],
        postgresql_where=sa.text("kind = 'memory' AND importance >= 0.7"),
    )


def downgrade() -> None:
    op.drop_index("ix_statements_arrival", table_name="statements")
    op.drop_index("ix_statements_ranked", table_name="statements")
