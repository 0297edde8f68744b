"""Memories: statements with an importance, and teachings by messages."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "e4a70c1d9b52"
down_revision: str | Sequence[str] | None = "e4a9c61f7b35"
branch_labels = None
depends_on = None

widens = ("ck_statements_kind",)

_OF_MEMORIES = ("category", "importance", "tags", "pinned", "archived", "forgotten")


def upgrade() -> None:
    op.drop_constraint(op.f("ck_statements_kind"), "statements", type_="check")
    op.create_check_constraint(op.f("ck_statements_kind"), "statements", "kind IN ('fact', 'block', 'memory')")
    op.add_column("statements", sa.Column("category", sa.String(), nullable=True))
    op.add_column("statements", sa.Column("importance", sa.Float(), nullable=True))
    op.add_column("statements", sa.Column("tags", postgresql.ARRAY(sa.Text()), nullable=True))
    op.add_column("statements", sa.Column("pinned", sa.Boolean(), server_default="false", nullable=False))
    op.add_column("statements", sa.Column("archived", sa.Boolean(), nullable=True))
    op.add_column("statements", sa.Column("forgotten", postgresql.ARRAY(sa.LargeBinary()), nullable=True))
    op.add_column("teachings", sa.Column("message_id", sa.String(), nullable=True))
    op.add_column("teachings", sa.Column("text_hash", sa.LargeBinary(), nullable=True))
    op.create_check_constraint(op.f("ck_teachings_message"), "teachings", "(message_id IS NULL) = (text_hash IS NULL)")
    op.execute("ALTER TABLE statements ALTER COLUMN tags SET STATISTICS 0")
    op.execute("ALTER TABLE teachings ALTER COLUMN message_id SET STATISTICS 0")


def downgrade() -> None:
    op.drop_constraint(op.f("ck_teachings_message"), "teachings", type_="check")
    op.drop_column("teachings", "text_hash")
    op.drop_column("teachings", "message_id")
    op.execute("DELETE FROM teachings t USING statements s WHERE s.statement_id = t.statement_id AND s.kind = 'memory'")
    op.execute("DELETE FROM statements WHERE kind = 'memory'")
    for column in reversed(_OF_MEMORIES):
        op.drop_column("statements", column)
    op.drop_constraint(op.f("ck_statements_kind"), "statements", type_="check")
    op.create_check_constraint(op.f("ck_statements_kind"), "statements", "kind IN ('fact', 'block')")
