"""An index that leads from a user to the chats that have renamed a character."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "3e8b52c7d094"
down_revision: str | Sequence[str] | None = "9a41d7e3b206"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_chats_renamed",
        "chats",
        ["user_key"],
        postgresql_where=sa.text("line_status = 'current' AND jsonb_path_exists(characters, '$[*].aliases[*]')"),
    )


def downgrade() -> None:
    op.drop_index("ix_chats_renamed", table_name="chats")
