"""Core blocks: statements that are operations on a text."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "e4a9c61f7b35"
down_revision: str | Sequence[str] | None = "c92e60b4f813"
branch_labels = None
depends_on = None

widens = ("ck_statements_kind",)

_OPERATION = "operation IN ('replace', 'append', 'search_replace')"
_PATTERN = "(pattern IS NOT NULL) = (operation IS NOT DISTINCT FROM 'search_replace')"


def upgrade() -> None:
    op.add_column("statements", sa.Column("operation", sa.String(), nullable=True))
    op.add_column("statements", sa.Column("pattern", sa.Text(), nullable=True))
    op.execute("ALTER TABLE statements ALTER COLUMN pattern SET STATISTICS 0")
    op.drop_constraint(op.f("ck_statements_kind"), "statements")
    op.create_check_constraint(op.f("ck_statements_kind"), "statements", "kind IN ('fact', 'block')")
    op.create_check_constraint(op.f("ck_statements_operation"), "statements", _OPERATION)
    op.create_check_constraint(op.f("ck_statements_pattern"), "statements", _PATTERN)


def downgrade() -> None:
    op.execute("DELETE FROM teachings WHERE layer = 'blocks'")
    op.execute("DELETE FROM statements WHERE kind = 'block'")
    op.drop_constraint(op.f("ck_statements_pattern"), "statements")
    op.drop_constraint(op.f("ck_statements_operation"), "statements")
    op.drop_constraint(op.f("ck_statements_kind"), "statements")
    op.create_check_constraint(op.f("ck_statements_kind"), "statements", "kind IN ('fact')")
    op.drop_column("statements", "pattern")
    op.drop_column("statements", "operation")
