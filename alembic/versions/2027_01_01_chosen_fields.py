"""Memories record which of their fields a person set."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "5b7d20c9e4a1"
down_revision: str | Sequence[str] | None = "2c8e51f7b0d4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("statements", sa.Column("chosen", postgresql.ARRAY(sa.Text()), nullable=True))


def downgrade() -> None:
    op.drop_column("statements", "chosen")
