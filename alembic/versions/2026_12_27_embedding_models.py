"""Embedding models, and the extension for vectors."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "7be41c05d9a2"
down_revision: str | Sequence[str] | None = "c3a96f10e25d"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    op.create_table(
        "embedding_models",
        sa.Column("model_id", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("is_current", sa.Boolean(), nullable=False),
        sa.CheckConstraint("dimension BETWEEN 1 AND 16000", name=op.f("ck_embedding_models_dimension")),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_embedding_models")),
    )
    op.create_index("uq_embedding_models_name_dimension", "embedding_models", ["name", "dimension"], unique=True)
    op.create_index(
        "uq_embedding_models_is_current",
        "embedding_models",
        ["is_current"],
        unique=True,
        postgresql_where=sa.text("is_current"),
    )


def downgrade() -> None:
    op.drop_table("embedding_models")  # the extension stays: other databases of its template have it, too
