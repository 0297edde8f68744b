"""Usage of the model by tenant, month and layer."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "3f1c8a2b7d60"
down_revision: str | Sequence[str] | None = "9c27d0a4e5b1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_usage",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("layer", sa.String(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("wait_ms", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("extract(day FROM month) = 1", name=op.f("ck_model_usage_month")),
        sa.CheckConstraint("failures BETWEEN 0 AND calls", name=op.f("ck_model_usage_failures")),
        sa.CheckConstraint("prompt_tokens >= 0 AND completion_tokens >= 0", name=op.f("ck_model_usage_tokens")),
        sa.CheckConstraint("wait_ms >= 0", name=op.f("ck_model_usage_wait_ms")),
        sa.PrimaryKeyConstraint("tenant", "month", "layer", name=op.f("pk_model_usage")),
        postgresql_with={"fillfactor": 70},
    )


def downgrade() -> None:
    """Delete the recorded usage, so monthly limits start again from zero."""
    op.drop_table("model_usage")
