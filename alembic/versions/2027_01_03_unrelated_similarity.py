"""The similarity of unrelated texts to an embedding model: it is measured at the next start."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "e27c50b8a914"
down_revision: str | Sequence[str] | None = "9d3e6a1f58c2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("embedding_models", sa.Column("unrelated_similarity", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("embedding_models", "unrelated_similarity")
