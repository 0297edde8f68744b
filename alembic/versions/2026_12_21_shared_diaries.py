"""An index that leads from a user to the chats that share their diaries."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "5d20e8b7c914"
down_revision: str | Sequence[str] | None = "a7c41d90e385"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_chats_diaries",
        "chats",
        ["user_key"],
        postgresql_where=sa.text("line_status = 'current' AND settings #>> '{diary,scope}' = 'character'"),
    )


def downgrade() -> None:
    op.drop_index("ix_chats_diaries", table_name="chats")
