"""Teachings record when their message was sent, so that memories are dated with what was said and not with the import.

Old rows have no such time: their memories keep the date at which they were learnt.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "9a41d7e3b206"
down_revision: str | Sequence[str] | None = "d1f5a83c6b29"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("teachings", sa.Column("said_at", postgresql.TIMESTAMP(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("teachings", "said_at")
