"""What the lines of imported files had beside what is stored."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "8e1f4b7a2d60"
down_revision: str | Sequence[str] | None = "9f4b7d20a6e1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "source_lines",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.CheckConstraint("seq >= 0 AND number >= 0", name=op.f("ck_source_lines_place")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "seq", "number", name=op.f("pk_source_lines")),
    )
    op.execute("ALTER TABLE source_lines ALTER COLUMN source SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table("source_lines")
