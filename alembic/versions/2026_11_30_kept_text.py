"""A column for the text of a summary that a person wrote to be kept."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "4a7d1c93e5f6"
down_revision: str | Sequence[str] | None = "b7d3c5e81f46"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("narrative_versions", sa.Column("kept_text", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    """Put kept texts before the folded ones, so that none is lost; later folds then change them."""
    op.execute(
        """
        UPDATE narrative_versions SET text = concat_ws(E'\\n\\n', kept_text, nullif(text, ''))
        WHERE kept_text <> ''
        """
    )
    op.drop_column("narrative_versions", "kept_text")
