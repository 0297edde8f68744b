"""The initial tables: chats, messages, memos, due work, keys, secrets."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "648adf563a1c"
down_revision: str | Sequence[str] | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chats",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("standing", sa.String(), server_default="current", nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("chat_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("user_key", sa.Uuid(), nullable=True),
        sa.Column(
            "characters",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default="[]",
            nullable=False,
        ),
        sa.Column("user_persona", sa.Text(), nullable=True),
        sa.Column("system_prompt", sa.Text(), nullable=True),
        sa.Column(
            "settings", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("time_zone", sa.String(), server_default="UTC", nullable=False),
        sa.Column("language", sa.String(), nullable=True),
        sa.Column(
            "metadata", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("head_seq", sa.Integer(), server_default="0", nullable=False),
        sa.Column("anchor_seq", sa.Integer(), server_default="1", nullable=False),
        sa.Column("history_messages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("message_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("turn_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("token_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("memo_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("awaits_reply", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("cut_waits", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("last_cut", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column(
            "cursors", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.Column("last_active_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column(
            "memo_window",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default="{}",
            nullable=False,
        ),
        sa.CheckConstraint("standing IN ('current', 'abandoned', 'checkpoint')", name=op.f("ck_chats_standing")),
        sa.CheckConstraint("anchor_seq >= 1 AND anchor_seq <= head_seq + 1", name=op.f("ck_chats_anchor")),
        sa.CheckConstraint("head_seq >= 0 AND history_messages >= 0", name=op.f("ck_chats_head")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", name=op.f("pk_chats")),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index(
        "ix_chats_tenant",
        "chats",
        ["tenant", "created_at", "chat_key"],
        unique=False,
        postgresql_where=sa.text("standing = 'current'"),
    )
    op.create_index(
        "ix_chats_user", "chats", ["user_key"], unique=False, postgresql_where=sa.text("standing = 'current'")
    )
    op.create_index(
        "uq_chats_current", "chats", ["chat_key"], unique=True, postgresql_where=sa.text("standing = 'current'")
    )
    op.create_table(
        "keys",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("from_environment", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("revoked_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "scopes <@ ARRAY['read', 'write', 'admin'] AND cardinality(scopes) >= 1", name=op.f("ck_keys_scopes")
        ),
        sa.CheckConstraint("tenant ~ '^[A-Za-z0-9._:@-]{1,100}$'", name=op.f("ck_keys_tenant")),
        sa.CheckConstraint("octet_length(secret_hash) = 32", name=op.f("ck_keys_secret_hash")),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_keys")),
    )
    op.create_index(
        "uq_keys_environment", "keys", ["from_environment"], unique=True, postgresql_where=sa.text("from_environment")
    )
    op.create_table(
        "memos",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("memo_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("first_seq", sa.Integer(), nullable=True),
        sa.Column("last_seq", sa.Integer(), nullable=True),
        sa.Column("first_message_id", sa.String(), nullable=True),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column(
            "highlights",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default="[]",
            nullable=False,
        ),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("filters", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("source_hash", sa.LargeBinary(), nullable=True),
        sa.Column("current_hash", sa.LargeBinary(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("prompt_version", sa.String(), nullable=True),
        sa.Column("pinned", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("edited", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("made_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("deleted_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("first_seq IS NOT NULL OR origin = 'person'", name=op.f("ck_memos_person")),
        sa.CheckConstraint("origin IN ('model', 'extractive', 'person')", name=op.f("ck_memos_origin")),
        sa.CheckConstraint("status IN ('pending', 'ready', 'empty')", name=op.f("ck_memos_status")),
        sa.CheckConstraint(
            "(first_seq IS NULL) = (last_seq IS NULL) AND first_seq <= last_seq", name=op.f("ck_memos_range")
        ),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "memo_id", name=op.f("pk_memos")),
    )
    op.create_index(
        "ix_memos_pinned",
        "memos",
        ["chat_key", "line_id", "place"],
        unique=False,
        postgresql_where=sa.text("pinned"),
    )
    op.create_index("ix_memos_place", "memos", ["chat_key", "line_id", "place", "number"], unique=False)
    op.create_index(
        "ix_memos_stale",
        "memos",
        ["chat_key", "line_id", "first_seq"],
        unique=False,
        postgresql_where=sa.text("source_hash IS DISTINCT FROM current_hash AND deleted_at IS NULL"),
    )
    op.create_index(
        "uq_memos_batch",
        "memos",
        ["chat_key", "line_id", "first_seq"],
        unique=True,
        postgresql_where=sa.text("first_seq IS NOT NULL"),
    )
    op.create_table(
        "messages",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("blank", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("importance", sa.Double(), nullable=True),
        sa.Column("tool_calls", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("tool_call_id", sa.String(), nullable=True),
        sa.Column("metadata", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("sent_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("identity", sa.LargeBinary(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("excluded", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("pinned", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("hidden_by", sa.String(), nullable=True),
        sa.Column("edited_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("deleted_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("hidden_by IS NULL OR hidden_by IN ('user', 'scenes')", name=op.f("ck_messages_hidden_by")),
        sa.CheckConstraint("kind IS NULL OR kind = 'thought'", name=op.f("ck_messages_kind")),
        sa.CheckConstraint(
            "role IN ('user', 'assistant', 'system', 'tool', 'narrator')", name=op.f("ck_messages_role")
        ),
        sa.CheckConstraint(
            "importance IS NULL OR (importance >= 0 AND importance <= 1)", name=op.f("ck_messages_importance")
        ),
        sa.CheckConstraint("seq >= 1", name=op.f("ck_messages_seq")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "seq", name=op.f("pk_messages")),
    )
    op.create_index("uq_messages_id", "messages", ["chat_key", "line_id", "message_id"], unique=True)
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secrets")),
    )
    op.create_table(
        "work",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("layer", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("work_id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("at_seq", sa.Integer(), nullable=False),
        sa.Column("run_after", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("first_due_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease", sa.Uuid(), nullable=True),
        sa.Column("leased_until", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("transient", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("failed_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("payload", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.CheckConstraint("(lease IS NULL) = (leased_until IS NULL)", name=op.f("ck_work_lease")),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_work_attempts")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "layer", "key", name=op.f("pk_work")),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index(
        "ix_work_ripe", "work", ["tenant", "run_after"], unique=False, postgresql_where=sa.text("failed_at IS NULL")
    )
    op.create_index(
        "ix_work_soonest", "work", ["run_after"], unique=False, postgresql_where=sa.text("failed_at IS NULL")
    )
    op.create_index("ix_work_tenant", "work", ["tenant", "work_id"], unique=False)
    op.create_index(
        "ix_work_transient",
        "work",
        ["failed_at"],
        unique=False,
        postgresql_where=sa.text("transient AND failed_at IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index(
        "ix_work_transient", table_name="work", postgresql_where=sa.text("transient AND failed_at IS NOT NULL")
    )
    op.drop_index("ix_work_tenant", table_name="work")
    op.drop_index("ix_work_soonest", table_name="work", postgresql_where=sa.text("failed_at IS NULL"))
    op.drop_index("ix_work_ripe", table_name="work", postgresql_where=sa.text("failed_at IS NULL"))
    op.drop_table("work")
    op.drop_table("secrets")
    op.drop_index("uq_messages_id", table_name="messages")
    op.drop_table("messages")
    op.drop_index("uq_memos_batch", table_name="memos", postgresql_where=sa.text("first_seq IS NOT NULL"))
    op.drop_index(
        "ix_memos_stale",
        table_name="memos",
        postgresql_where=sa.text("source_hash IS DISTINCT FROM current_hash AND deleted_at IS NULL"),
    )
    op.drop_index("ix_memos_place", table_name="memos")
    op.drop_index("ix_memos_pinned", table_name="memos", postgresql_where=sa.text("pinned"))
    op.drop_table("memos")
    op.drop_index("uq_keys_environment", table_name="keys", postgresql_where=sa.text("from_environment"))
    op.drop_table("keys")
    op.drop_index("uq_chats_current", table_name="chats", postgresql_where=sa.text("standing = 'current'"))
    op.drop_index("ix_chats_user", table_name="chats", postgresql_where=sa.text("standing = 'current'"))
    op.drop_index("ix_chats_tenant", table_name="chats", postgresql_where=sa.text("standing = 'current'"))
    op.drop_table("chats")
