"""The user's name in a chat."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "b7d3c5e81f46"
down_revision: str | Sequence[str] | None = "e2b96f03a7d8"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("chats", sa.Column("user_name", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("chats", "user_name")
