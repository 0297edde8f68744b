"""The index of message ids is used only to look up ids.

Without the condition, PostgreSQL could read a range of seq by this index, and with it the whole chat for each range.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "4b90d6c7e315"
down_revision: str | Sequence[str] | None = "e27c50b8a914"
branch_labels = None
depends_on = None

rebuilds = ("uq_messages_id",)

_COLUMNS = ["chat_key", "message_id", "line_id"]
_HAS_ID = sa.text("message_id IS NOT NULL")


def upgrade() -> None:
    op.drop_index("uq_messages_id", table_name="messages")
    op.create_index("uq_messages_id", "messages", _COLUMNS, unique=True, postgresql_where=_HAS_ID)


def downgrade() -> None:
    op.drop_index("uq_messages_id", table_name="messages", postgresql_where=_HAS_ID)
    op.create_index("uq_messages_id", "messages", _COLUMNS, unique=True)
