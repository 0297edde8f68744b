"""The caller's metadata belongs to the chat: copy the metadata of the current line to all lines of a chat."""

from collections.abc import Sequence

from alembic import op

revision: str = "d4a1f7c30e52"
down_revision: str | Sequence[str] | None = "7d40c6be91f3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        UPDATE chats SET metadata = current.metadata FROM chats AS current
        WHERE current.chat_key = chats.chat_key AND current.standing = 'current'
            AND chats.metadata <> current.metadata
        """
    )


def downgrade() -> None:
    """Change nothing: the previous version can read these rows."""
