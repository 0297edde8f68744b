"""Progress of work: what a job has made so far, kept between its attempts."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "a4c81e6d7f25"
down_revision: str | Sequence[str] | None = "b41c7e92d6f0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("work", sa.Column("progress", postgresql.JSONB(none_as_null=True, astext_type=sa.Text())))


def downgrade() -> None:
    op.drop_column("work", "progress")
