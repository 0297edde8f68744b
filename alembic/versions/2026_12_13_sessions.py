"""Sessions: stretches of a chat between two breaks."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "c92e60b4f813"
down_revision: str | Sequence[str] | None = "d18c5b7e2f90"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("first_seq", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("began_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.CheckConstraint("reason IN ('first', 'idle', 'daily', 'turns', 'manual')", name=op.f("ck_sessions_reason")),
        sa.CheckConstraint("number >= 1 AND first_seq >= number", name=op.f("ck_sessions_number")),
        sa.CheckConstraint("(number = 1) = (reason = 'first')", name=op.f("ck_sessions_first")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "number", name=op.f("pk_sessions")),
    )


def downgrade() -> None:
    op.drop_table("sessions")
