"""An index that leads to the memories of a scope that were forgotten or that a person replaced."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "c47e1a9d5b60"
down_revision: str | Sequence[str] | None = "5d0c83f6a21b"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_statements_decided",
        "statements",
        ["owner_key", "line_id", "character", "key"],
        postgresql_where=sa.text("kind = 'memory' AND (content IS NULL OR forgotten IS NOT NULL)"),
    )


def downgrade() -> None:
    op.drop_index("ix_statements_decided", table_name="statements")
