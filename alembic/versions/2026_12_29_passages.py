"""Passages: the index of words, by which searches find messages."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "9f4b7d20a6e1"
down_revision: str | Sequence[str] | None = "8e41b7c05f2a"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "passages",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("keys", postgresql.ARRAY(sa.Integer()), nullable=False),
        sa.CheckConstraint("line_id = '00000000-0000-0000-0000-000000000001'", name=op.f("ck_passages_line")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "message_id", "digest", name=op.f("pk_passages")),
    )
    op.create_index(
        "ix_passages_keys",
        "passages",
        ["keys"],
        postgresql_using="gin",
        postgresql_with={"gin_pending_list_limit": 256},
    )
    op.execute("ALTER TABLE passages ALTER COLUMN keys SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table("passages")
