"""Vectors: messages are found by their meaning."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op
from app.passages.models import HalfVector

revision: str = "2c8e51f7b0d4"
down_revision: str | Sequence[str] | None = "8e1f4b7a2d60"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "vectors",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("part", sa.SmallInteger(), nullable=False),
        sa.Column("vector", HalfVector(), nullable=False),
        sa.CheckConstraint("line_id = '00000000-0000-0000-0000-000000000001'", name=op.f("ck_vectors_line")),
        sa.PrimaryKeyConstraint(
            "chat_key", "line_id", "model_id", "message_id", "digest", "part", name=op.f("pk_vectors")
        ),
    )
    op.execute("ALTER TABLE vectors ALTER COLUMN vector SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table("vectors")
