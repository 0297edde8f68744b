"""An index of failed work."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "5a90e7d3c241"
down_revision: str | Sequence[str] | None = "e8b30d5f1c64"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_work_failed", "work", ["tenant", "work_id"], postgresql_where=sa.text("failed_at IS NOT NULL"))


def downgrade() -> None:
    op.drop_index("ix_work_failed", table_name="work")
