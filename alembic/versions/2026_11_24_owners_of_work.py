"""Due work belongs to an owner: a line of a chat, a user or a tenant."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "7d40c6be91f3"
down_revision: str | Sequence[str] | None = "c1d7a4e09b35"
branch_labels = None
depends_on = None

NO_LINE = "00000000-0000-0000-0000-000000000000"


def upgrade() -> None:
    _rename_key("chat_key", "owner_key")
    op.add_column("work", sa.Column("user_id", sa.String(), nullable=True))
    op.create_check_constraint(op.f("ck_work_user"), "work", f"user_id IS NULL OR line_id = '{NO_LINE}'")


def downgrade() -> None:
    """Delete the work of users and tenants, which the previous schema cannot store."""
    op.execute(f"DELETE FROM work WHERE line_id = '{NO_LINE}'")  # noqa: S608 - a constant
    op.drop_constraint(op.f("ck_work_user"), "work", type_="check")
    op.drop_column("work", "user_id")
    _rename_key("owner_key", "chat_key")


def _rename_key(former: str, new: str) -> None:
    """Rename the first column of the primary key and, from PostgreSQL 18 on, its NOT NULL constraint."""
    op.alter_column("work", former, new_column_name=new)
    op.execute(
        f"""
        DO $$ BEGIN
            ALTER TABLE work RENAME CONSTRAINT work_{former}_not_null TO work_{new}_not_null;
        EXCEPTION WHEN undefined_object THEN NULL;
        END $$
        """
    )
