"""An index that leads to the most important memories of a scope."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "a7c41d90e385"
down_revision: str | Sequence[str] | None = "f03b7d5a2c61"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_statements_important",
        "statements",
        [
            "owner_key",
            "line_id",
            "character",
            sa.text("importance DESC"),
            sa.text("learnt_at DESC"),
            sa.text("statement_id DESC"),
        ],
        postgresql_where=sa.text("kind = 'memory' AND importance >= 0.7 AND archived IS NOT TRUE"),
    )


def downgrade() -> None:
    op.drop_index("ix_statements_important", table_name="statements")
