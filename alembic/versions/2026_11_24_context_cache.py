"""One cache for contexts on the chat's row.

One column holds the cached data of all layers. The memo window becomes the entry of its layer in that column.

Revision ID: c1d7a4e09b35
Revises: b52e9d417c08
"""

from alembic import op

revision = "c1d7a4e09b35"
down_revision = "b52e9d417c08"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE chats RENAME COLUMN shown TO context_cache")
    op.execute(
        "UPDATE chats SET context_cache = context_cache || jsonb_build_object('memos', memo_window)"
        " WHERE memo_window <> '{}'"
    )
    op.execute("ALTER TABLE chats DROP COLUMN memo_window")


def downgrade() -> None:
    op.execute("ALTER TABLE chats ADD COLUMN memo_window jsonb NOT NULL DEFAULT '{}'")
    op.execute(
        "UPDATE chats SET memo_window = context_cache -> 'memos', context_cache = context_cache - 'memos'"
        " WHERE context_cache ? 'memos'"
    )
    op.execute("ALTER TABLE chats RENAME COLUMN context_cache TO shown")
