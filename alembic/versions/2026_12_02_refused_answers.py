"""The refused answers of a work item."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "b41c7e92d6f0"
down_revision: str | Sequence[str] | None = "b61d0c94e7f5"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "work",
        sa.Column("refusals", postgresql.JSONB(astext_type=sa.Text()), server_default="[]", nullable=False),
    )


def downgrade() -> None:
    op.drop_column("work", "refusals")
