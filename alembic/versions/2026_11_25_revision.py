"""A revision for every line of a chat, and for every user and tenant."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "e8b30d5f1c64"
down_revision: str | Sequence[str] | None = "e81b5c2d9a47"
branch_labels = None
depends_on = None

NOW_MS = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint"
LINE_BEGINS = f"jsonb_build_object('line', {NOW_MS})"


def upgrade() -> None:
    """Add the columns with a constant default first, because a computed default would rewrite the table."""
    now_ms = op.get_bind().scalar(sa.text(f"SELECT {NOW_MS}"))
    for name in ("revision", "base_revision"):
        op.add_column("chats", sa.Column(name, sa.BigInteger(), server_default=sa.text(str(now_ms)), nullable=False))
        op.alter_column("chats", name, server_default=sa.text(NOW_MS))
    line_begins = sa.text(f"'{{\"line\": {now_ms}}}'")
    op.add_column(
        "chats",
        sa.Column("changed", postgresql.JSONB(astext_type=sa.Text()), server_default=line_begins, nullable=False),
    )
    op.alter_column("chats", "changed", server_default=sa.text(LINE_BEGINS))
    op.create_table(
        "scopes",
        sa.Column("owner_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("revision", sa.BigInteger(), server_default=sa.text(NOW_MS), nullable=False),
        sa.CheckConstraint("line_id = '00000000-0000-0000-0000-000000000000'", name=op.f("ck_scopes_line")),
        sa.PrimaryKeyConstraint("owner_key", "line_id", name=op.f("pk_scopes")),
        postgresql_with={"fillfactor": 70},
    )


def downgrade() -> None:
    op.drop_table("scopes")
    for name in ("changed", "base_revision", "revision"):
        op.drop_column("chats", name)
