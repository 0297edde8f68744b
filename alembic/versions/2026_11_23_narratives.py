"""Tables and columns for narratives: versions, diary entries, scenes, and their cache for contexts."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from alembic import op

revision: str = "b52e9d417c08"
down_revision: str | Sequence[str] | None = "3f1c8a2b7d60"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "chats",
        sa.Column(
            "shown",
            postgresql.JSONB(none_as_null=True, astext_type=sa.Text()),
            server_default="{}",
            nullable=False,
        ),
    )
    op.add_column("messages", sa.Column("kept_shown", sa.Boolean(), server_default="false", nullable=False))
    op.create_table(
        "narrative_versions",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("layer", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("base_version", sa.Integer(), nullable=True),
        sa.Column("begins_seq", sa.Integer(), nullable=False),
        sa.Column("first_place", sa.Integer(), nullable=False),
        sa.Column("last_place", sa.Integer(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("filters", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("source_hash", sa.LargeBinary(), nullable=False),
        sa.Column("current_hash", sa.LargeBinary(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("prompt_version", sa.String(), nullable=True),
        sa.Column("current", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("deleted_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("NOT (current AND deleted_at IS NOT NULL)", name=op.f("ck_narrative_versions_current")),
        sa.CheckConstraint("base_version < version", name=op.f("ck_narrative_versions_base")),
        sa.CheckConstraint("origin IN ('model', 'extractive', 'person')", name=op.f("ck_narrative_versions_origin")),
        sa.CheckConstraint(
            "first_place >= 1 AND last_place >= first_place - 1", name=op.f("ck_narrative_versions_range")
        ),
        sa.PrimaryKeyConstraint(
            "chat_key", "line_id", "layer", "subject", "version", name=op.f("pk_narrative_versions")
        ),
    )
    op.create_index(
        "ix_narrative_versions_place",
        "narrative_versions",
        ["chat_key", "line_id", "layer", "subject", "last_place", "first_place"],
        unique=False,
    )
    op.create_index(
        "ix_narrative_versions_stale",
        "narrative_versions",
        ["chat_key", "line_id", "layer", "subject", "last_place"],
        unique=False,
        postgresql_where=sa.text("source_hash <> current_hash"),
    )
    op.create_index(
        "ix_narrative_versions_written",
        "narrative_versions",
        ["chat_key", "line_id", "layer", "subject"],
        unique=False,
        postgresql_where=sa.text("origin = 'person' AND deleted_at IS NULL"),
    )
    op.create_index(
        "uq_narrative_versions_current",
        "narrative_versions",
        ["chat_key", "line_id", "layer", "subject"],
        unique=True,
        postgresql_where=sa.text("current"),
    )
    op.create_table(
        "diary_entries",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("entry_id", sa.Uuid(), nullable=False),
        sa.Column("character", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at_seq", sa.Integer(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("identity", sa.LargeBinary(), nullable=True),
        sa.Column("first_seq", sa.Integer(), nullable=True),
        sa.Column("last_seq", sa.Integer(), nullable=True),
        sa.Column("filters", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("source_hash", sa.LargeBinary(), nullable=True),
        sa.Column("current_hash", sa.LargeBinary(), nullable=True),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("prompt_version", sa.String(), nullable=True),
        sa.Column("edited", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("dated_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("deleted_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("origin IN ('character', 'person', 'service')", name=op.f("ck_diary_entries_origin")),
        sa.CheckConstraint(
            "(first_seq IS NULL) = (last_seq IS NULL) AND first_seq <= last_seq", name=op.f("ck_diary_entries_range")
        ),
        sa.CheckConstraint("(origin = 'service') = (first_seq IS NOT NULL)", name=op.f("ck_diary_entries_service")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "entry_id", name=op.f("pk_diary_entries")),
    )
    op.create_index("ix_diary_entries_seq", "diary_entries", ["chat_key", "line_id", "at_seq"], unique=False)
    op.create_index(
        "ix_diary_entries_service",
        "diary_entries",
        ["chat_key", "line_id", "last_seq"],
        unique=False,
        postgresql_where=sa.text("first_seq IS NOT NULL"),
    )
    op.create_index(
        "uq_diary_entries_number", "diary_entries", ["chat_key", "line_id", "character", "number"], unique=True
    )
    op.create_table(
        "scenes",
        sa.Column("chat_key", sa.Uuid(), nullable=False),
        sa.Column("line_id", sa.Uuid(), nullable=False),
        sa.Column("scene_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("first_seq", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("closed_by", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("status", sa.String(), server_default="pending", nullable=False),
        sa.Column("origin", sa.String(), server_default="model", nullable=False),
        sa.Column("title", sa.String(), nullable=True),
        sa.Column("recap", sa.Text(), server_default="", nullable=False),
        sa.Column("tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("filters", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("source_hash", sa.LargeBinary(), nullable=True),
        sa.Column("current_hash", sa.LargeBinary(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("prompt_version", sa.String(), nullable=True),
        sa.Column("edited", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("titled", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("made_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("lifted_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("cut_off", sa.Boolean(), server_default="false", nullable=False),
        sa.CheckConstraint("closed_by IN ('person', 'model', 'time', 'cut')", name=op.f("ck_scenes_closed_by")),
        sa.CheckConstraint("lifted_at IS NOT NULL OR NOT cut_off", name=op.f("ck_scenes_cut_off")),
        sa.CheckConstraint("origin IN ('model', 'extractive', 'person')", name=op.f("ck_scenes_origin")),
        sa.CheckConstraint("first_seq >= 1 AND first_seq <= last_seq", name=op.f("ck_scenes_range")),
        sa.CheckConstraint("status IN ('pending', 'ready', 'empty')", name=op.f("ck_scenes_status")),
        sa.PrimaryKeyConstraint("chat_key", "line_id", "scene_id", name=op.f("pk_scenes")),
    )
    op.create_index(
        "uq_scenes_break",
        "scenes",
        ["chat_key", "line_id", "last_seq"],
        unique=True,
        postgresql_where=sa.text("lifted_at IS NULL"),
    )
    op.create_index(
        "ix_scenes_lifted",
        "scenes",
        ["chat_key", "line_id", "last_seq"],
        unique=False,
        postgresql_where=sa.text("lifted_at IS NOT NULL"),
    )
    op.create_index(
        "ix_scenes_stale",
        "scenes",
        ["chat_key", "line_id", "last_seq"],
        unique=False,
        postgresql_where=sa.text("source_hash IS DISTINCT FROM current_hash AND lifted_at IS NULL"),
    )


def downgrade() -> None:
    """Delete all summaries, recaps, scenes and diary entries, and show the messages that scenes had hidden."""
    op.execute("UPDATE messages SET hidden_by = NULL WHERE hidden_by = 'scenes'")
    op.execute("DELETE FROM work WHERE layer IN ('summary', 'diary', 'scenes')")
    op.execute("UPDATE chats SET cursors = cursors - '{summary,diary,scenes}'::text[]")
    op.drop_table("scenes")
    op.drop_table("diary_entries")
    op.drop_table("narrative_versions")
    op.drop_column("messages", "kept_shown")
    op.drop_column("chats", "shown")
