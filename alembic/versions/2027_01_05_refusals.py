"""A memory that was made without the model says which answers of the model were refused."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "d1f5a83c6b29"
down_revision: str | Sequence[str] | None = "4b90d6c7e315"
branch_labels = None
depends_on = None

_TABLES = ("memos", "narrative_versions", "scenes", "consolidations")


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("refusals", postgresql.JSONB(), nullable=True))
        op.execute(f"ALTER TABLE {table} ALTER COLUMN refusals SET STATISTICS 0")


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_column(table, "refusals")
