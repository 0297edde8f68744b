"""Statements and teachings: what is known in a scope, and which lines taught it.

`known` of a user or a tenant is what contexts read of its live statements.

The trigger deletes a statement with its last teaching, in the same transaction, whatever deletes the teaching: the end
of a line, a line, a chat, a discarded generation.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "d18c5b7e2f90"
down_revision: str | Sequence[str] | None = "b7f24d08c6a1"
branch_labels = None
depends_on = None

_NO_LINE = "00000000-0000-0000-0000-000000000000"
_CHAT_WIDE = "00000000-0000-0000-0000-000000000001"

_FUNCTION = """
    CREATE FUNCTION delete_untaught() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM FROM statements s
        WHERE NOT s.is_set AND (s.owner_key, s.statement_id) IN (
            SELECT coalesce(g.wide_key, g.chat_key), g.statement_id FROM gone g)
        ORDER BY s.owner_key, s.statement_id FOR UPDATE;
        DELETE FROM statements s
        WHERE NOT s.is_set AND (s.owner_key, s.statement_id) IN (
            SELECT coalesce(g.wide_key, g.chat_key), g.statement_id FROM gone g)
            AND NOT EXISTS (
                SELECT FROM teachings t
                WHERE t.statement_id = s.statement_id AND coalesce(t.wide_key, t.chat_key) = s.owner_key);
        RETURN NULL;
    END $$"""

_TRIGGER = """
    CREATE TRIGGER delete_untaught AFTER DELETE ON teachings REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION delete_untaught()"""


def upgrade() -> None:
    op.create_table(
        "statements",
        sa.Column("owner_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("statement_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("character", sa.String(), server_default="", nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=True),
        sa.Column("tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("is_set", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("edited", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("learnt_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.CheckConstraint(f"line_id IN ('{_NO_LINE}', '{_CHAT_WIDE}')", name=op.f("ck_statements_line")),
        sa.CheckConstraint("kind IN ('fact')", name=op.f("ck_statements_kind")),
        sa.CheckConstraint("origin IN ('model', 'extractive', 'tool', 'person')", name=op.f("ck_statements_origin")),
        sa.CheckConstraint(f"character = '' OR line_id = '{_NO_LINE}'", name=op.f("ck_statements_character")),
        sa.PrimaryKeyConstraint("owner_key", "line_id", "statement_id", name=op.f("pk_statements")),
    )
    op.create_index(
        "ix_statements_key",
        "statements",
        ["owner_key", "line_id", "kind", "character", "key", "learnt_at", "statement_id"],
    )
    op.create_table(
        "teachings",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("teaching_id", sa.Uuid(), nullable=False),
        sa.Column("layer", sa.String(), nullable=False),
        sa.Column("statement_id", sa.Uuid(), nullable=False),
        sa.Column("wide_key", sa.Uuid(), nullable=True),
        sa.Column("first_seq", sa.Integer(), nullable=False),
        sa.Column("hidden", sa.Boolean(), server_default="false", nullable=False),
        sa.CheckConstraint("first_seq >= 0", name=op.f("ck_teachings_first_seq")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "teaching_id", name=op.f("pk_teachings")),
    )
    op.create_index("ix_teachings_statement", "teachings", ["statement_id"])
    op.create_index("ix_teachings_seq", "teachings", ["chat_key", "line_id", "first_seq"])
    op.create_index(
        "ix_teachings_wide",
        "teachings",
        ["chat_key", "wide_key"],
        postgresql_where=sa.text("wide_key IS NOT NULL"),
    )
    op.add_column("scopes", sa.Column("known", postgresql.JSONB(), nullable=True))
    op.execute("ALTER TABLE scopes ALTER COLUMN known SET STATISTICS 0")
    for column in ("key", "content", "character"):
        op.execute(f"ALTER TABLE statements ALTER COLUMN {column} SET STATISTICS 0")
    op.execute(_FUNCTION)
    op.execute(_TRIGGER)


def downgrade() -> None:
    op.drop_column("scopes", "known")
    op.drop_table("teachings")
    op.drop_table("statements")
    op.execute("DROP FUNCTION delete_untaught")
