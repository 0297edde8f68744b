"""Tables and columns for conversations that change: swipes, revisions, pins, checkpoints, origins of lines."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "9c27d0a4e5b1"
down_revision: str | Sequence[str] | None = "648adf563a1c"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("chats", sa.Column("checkpoint", sa.String(), nullable=True))
    op.add_column("chats", sa.Column("parent_line_id", sa.Uuid(), nullable=True))
    op.add_column("chats", sa.Column("line_made_at", postgresql.TIMESTAMP(timezone=True), nullable=True))
    op.add_column("chats", sa.Column("memo_number", sa.Integer(), server_default="0", nullable=False))
    op.execute("UPDATE chats SET line_made_at = created_at, memo_number = memo_count")
    op.alter_column("chats", "line_made_at", nullable=False)
    op.create_check_constraint(
        op.f("ck_chats_checkpoint"), "chats", "(standing = 'checkpoint') = (checkpoint IS NOT NULL)"
    )
    op.create_index(
        "uq_chats_checkpoint",
        "chats",
        ["chat_key", "checkpoint"],
        unique=True,
        postgresql_where=sa.text("checkpoint IS NOT NULL"),
    )
    op.add_column("messages", sa.Column("selected_swipe", sa.Integer(), server_default="0", nullable=False))
    op.create_check_constraint(op.f("ck_messages_selected_swipe"), "messages", "selected_swipe >= 0")
    op.create_index(
        "ix_messages_pinned",
        "messages",
        ["chat_key", "line_id", "seq"],
        unique=False,
        postgresql_where=sa.text("pinned"),
    )
    op.drop_index("uq_messages_id", table_name="messages")
    op.create_index("uq_messages_id", "messages", ["chat_key", "message_id", "line_id"], unique=True)
    op.create_index(
        "ix_messages_sent",
        "messages",
        ["chat_key", "line_id", "seq"],
        unique=False,
        postgresql_where=sa.text("deleted_at IS NULL AND hidden_by IS NULL"),
    )
    op.add_column("memos", sa.Column("size", sa.Integer(), nullable=True))
    op.create_table(
        "swipes",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.CheckConstraint("place >= 0", name=op.f("ck_swipes_place")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "seq", "place", name=op.f("pk_swipes")),
    )
    op.create_table(
        "revisions",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("swipe", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("replaced_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "seq", "number", name=op.f("pk_revisions")),
    )


def downgrade() -> None:
    """Delete data that the previous schema cannot store: swipes that are not selected, and texts before edits."""
    op.drop_table("revisions")
    op.drop_table("swipes")
    op.drop_column("memos", "size")
    op.drop_index("uq_messages_id", table_name="messages")
    op.create_index("uq_messages_id", "messages", ["chat_key", "line_id", "message_id"], unique=True)
    op.drop_index(
        "ix_messages_sent",
        table_name="messages",
        postgresql_where=sa.text("deleted_at IS NULL AND hidden_by IS NULL"),
    )
    op.drop_index("ix_messages_pinned", table_name="messages", postgresql_where=sa.text("pinned"))
    op.drop_column("messages", "selected_swipe")
    op.drop_index("uq_chats_checkpoint", table_name="chats", postgresql_where=sa.text("checkpoint IS NOT NULL"))
    op.execute("UPDATE chats SET standing = 'abandoned', checkpoint = NULL WHERE standing = 'checkpoint'")
    op.drop_column("chats", "memo_number")
    op.drop_column("chats", "line_made_at")
    op.drop_column("chats", "parent_line_id")
    op.drop_column("chats", "checkpoint")
