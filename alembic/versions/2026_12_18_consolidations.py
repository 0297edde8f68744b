"""Consolidations: the ranges of messages that facts and memories were learnt from."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "f03b7d5a2c61"
down_revision: str | Sequence[str] | None = "e4a70c1d9b52"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "consolidations",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("first_seq", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("learnt_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("generated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("filters", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("source_hash", sa.LargeBinary(), nullable=True),
        sa.Column("current_hash", sa.LargeBinary(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("prompt_version", sa.String(), nullable=True),
        sa.CheckConstraint("first_seq <= last_seq", name=op.f("ck_consolidations_range")),
        sa.CheckConstraint("origin IN ('model', 'extractive')", name=op.f("ck_consolidations_origin")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "first_seq", name=op.f("pk_consolidations")),
    )
    op.create_index(
        "ix_consolidations_stale",
        "consolidations",
        ["chat_key", "line_id", "first_seq"],
        postgresql_where=sa.text("source_hash IS DISTINCT FROM current_hash"),
    )
    op.execute("ALTER TABLE consolidations ALTER COLUMN filters SET STATISTICS 0")


def downgrade() -> None:
    op.drop_table("consolidations")
