"""A flag of keys: whether their tokens of a chat see more than the chat itself."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "c3a96f10e25d"
down_revision: str | Sequence[str] | None = "5d20e8b7c914"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("keys", sa.Column("user_scope", sa.Boolean(), server_default="false", nullable=False))


def downgrade() -> None:
    op.drop_column("keys", "user_scope")
