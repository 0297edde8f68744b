"""The record of tool calls."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "8e41b7c05f2a"
down_revision: str | Sequence[str] | None = "7be41c05d9a2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tool_calls",
        sa.Column("owner_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("call_id", sa.Uuid(), nullable=False),
        sa.Column("made_on", sa.Uuid(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("character", sa.String(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("at_seq", sa.Integer(), nullable=False),
        sa.Column("only_chat", sa.Boolean(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.CheckConstraint("line_id = '00000000-0000-0000-0000-000000000001'", name=op.f("ck_tool_calls_line")),
        sa.CheckConstraint("outcome IN ('wrote', 'read', 'refused')", name=op.f("ck_tool_calls_outcome")),
        sa.PrimaryKeyConstraint("owner_key", "line_id", "call_id", name=op.f("pk_tool_calls")),
    )
    for column in ("tool", "character", "arguments", "answer"):
        op.execute(f"ALTER TABLE tool_calls ALTER COLUMN {column} SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table("tool_calls")
