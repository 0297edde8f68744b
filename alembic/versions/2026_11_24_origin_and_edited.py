"""`origin` is the author of the current text; `edited` is whether a person changed a text of the service or a tool."""

from collections.abc import Sequence

import sqlalchemy as sa

from alembic import op

revision: str = "e81b5c2d9a47"
down_revision: str | Sequence[str] | None = "d4a1f7c30e52"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE memos SET origin = 'person' WHERE edited AND origin <> 'person'")
    op.drop_constraint(op.f("ck_diary_entries_origin"), "diary_entries")
    op.drop_constraint(op.f("ck_diary_entries_service"), "diary_entries")
    op.execute(
        """
        UPDATE diary_entries SET origin = CASE
            WHEN edited THEN 'person' WHEN origin = 'service' THEN 'model' WHEN origin = 'character' THEN 'tool'
            ELSE origin END
        """
    )
    op.create_check_constraint(
        op.f("ck_diary_entries_origin"), "diary_entries", "origin IN ('model', 'tool', 'person')"
    )
    op.create_check_constraint(
        op.f("ck_diary_entries_source"),
        "diary_entries",
        "CASE origin WHEN 'model' THEN first_seq IS NOT NULL WHEN 'tool' THEN first_seq IS NULL ELSE true END",
    )
    op.add_column("narrative_versions", sa.Column("edited", sa.Boolean(), server_default="false", nullable=False))
    op.execute(
        """
        UPDATE narrative_versions AS written SET edited = true
        WHERE origin = 'person' AND EXISTS (
            SELECT FROM narrative_versions AS former
            WHERE former.chat_key = written.chat_key AND former.line_id = written.line_id
                AND former.layer = written.layer AND former.subject = written.subject
                AND former.version < written.version AND former.origin <> 'person')
        """
    )


def downgrade() -> None:
    op.drop_column("narrative_versions", "edited")
    op.drop_constraint(op.f("ck_diary_entries_source"), "diary_entries")
    op.drop_constraint(op.f("ck_diary_entries_origin"), "diary_entries")
    op.execute(
        """
        UPDATE diary_entries SET origin = CASE
            WHEN first_seq IS NOT NULL THEN 'service' WHEN identity IS NOT NULL THEN 'character' ELSE origin END
        """
    )
    op.create_check_constraint(
        op.f("ck_diary_entries_service"), "diary_entries", "(origin = 'service') = (first_seq IS NOT NULL)"
    )
    op.create_check_constraint(
        op.f("ck_diary_entries_origin"), "diary_entries", "origin IN ('character', 'person', 'service')"
    )
    op.execute("UPDATE memos SET origin = 'model' WHERE edited AND first_seq IS NOT NULL")
