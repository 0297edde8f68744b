"""Ids of characters.

The id of a character that is stored already is a UUIDv7 of the time at which its chat was created. The rest of it is a
hash of the chat and the name, so it is the same on all lines of the chat.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "d7e20b95c3a1"
down_revision: str | Sequence[str] | None = "a4c81e6d7f25"
branch_labels = None
depends_on = None

_ID = """(
    lpad(to_hex((extract(epoch FROM chats.created_at) * 1000)::bigint), 12, '0') || '7' || left(hash, 3) || '8'
    || substr(hash, 4, 15))::uuid"""


def upgrade() -> None:
    op.execute(
        f"""
        UPDATE chats SET characters = (
            SELECT jsonb_agg(jsonb_build_object('id', {_ID}) || one ORDER BY nth)
            FROM jsonb_array_elements(characters) WITH ORDINALITY AS c (one, nth),
                md5(chats.chat_key || (one ->> 'name')) AS hash
        )
        WHERE characters <> '[]'
        """  # noqa: S608 - constants only
    )


def downgrade() -> None:
    op.execute(
        """
        UPDATE chats SET characters = (
            SELECT jsonb_agg(one - 'id' - 'aliases' - 'hashed_name' ORDER BY nth)
            FROM jsonb_array_elements(characters) WITH ORDINALITY AS c (one, nth)
        )
        WHERE characters <> '[]'
        """
    )
