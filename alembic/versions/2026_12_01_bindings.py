"""What a tool wrote is bound to a reply."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "b61d0c94e7f5"
down_revision: str | Sequence[str] | None = "4a7d1c93e5f6"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "bindings",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("binding_id", sa.Uuid(), nullable=False),
        sa.Column("layer", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("character", sa.String(), nullable=False),
        sa.Column("identity", sa.LargeBinary(), nullable=False),
        sa.Column("asked_id", sa.String(), nullable=True),
        sa.Column("asked_hash", sa.LargeBinary(), nullable=True),
        sa.Column("message_id", sa.String(), nullable=True),
        sa.Column("next_swipe", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("awaits_user", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("at_seq", sa.Integer(), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=True),
        sa.Column("is_open", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("matches", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.CheckConstraint("NOT (is_open AND (matches OR text_hash IS NOT NULL))", name=op.f("ck_bindings_is_open")),
        sa.CheckConstraint("text_hash IS NULL OR message_id IS NOT NULL", name=op.f("ck_bindings_reply")),
        sa.CheckConstraint("at_seq >= 0", name=op.f("ck_bindings_at_seq")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "binding_id", name=op.f("pk_bindings")),
    )
    op.create_index("ix_bindings_seq", "bindings", ["chat_key", "line_id", "at_seq"])
    op.create_index("ix_bindings_open", "bindings", ["chat_key", "line_id"], postgresql_where=sa.text("is_open"))
    op.add_column("diary_entries", sa.Column("kept", sa.Boolean(), server_default="false", nullable=False))
    op.add_column("diary_entries", sa.Column("hidden", sa.Boolean(), server_default="false", nullable=False))
    op.create_check_constraint(
        op.f("ck_diary_entries_hidden"), "diary_entries", "NOT hidden OR (origin = 'tool' AND NOT kept)"
    )


def downgrade() -> None:
    op.execute("DELETE FROM diary_entries WHERE hidden")
    op.drop_constraint(op.f("ck_diary_entries_hidden"), "diary_entries")
    op.drop_column("diary_entries", "hidden")
    op.drop_column("diary_entries", "kept")
    op.drop_table("bindings")
