"""Replaced lines: which lines a later re-import may delete. All lines that exist are kept."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "b7f24d08c6a1"
down_revision: str | Sequence[str] | None = "e3a75c1f9d42"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("chats", sa.Column("replaceable", sa.Boolean(), server_default="false", nullable=False))
    op.add_column("chats", sa.Column("replaced_at", postgresql.TIMESTAMP(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("chats", "replaced_at")
    op.drop_column("chats", "replaceable")
