"""Vectors of the layers' texts: memories, memos and diary entries are found by their meaning."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op
from app.passages.models import HalfVector

revision: str = "9d3e6a1f58c2"
down_revision: str | Sequence[str] | None = "5b7d20c9e4a1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "text_vectors",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("part", sa.SmallInteger(), nullable=False),
        sa.Column("vector", HalfVector(), nullable=False),
        sa.CheckConstraint("line_id = '00000000-0000-0000-0000-000000000001'", name=op.f("ck_text_vectors_line")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "model_id", "digest", "part", name=op.f("pk_text_vectors")),
    )
    op.execute("ALTER TABLE text_vectors ALTER COLUMN vector SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table("text_vectors")
