"""Plain names of columns: a memo's sort key, a swipe's index, a truncated scene."""

from collections.abc import Sequence

from alembic import op

revision: str = "e2b96f03a7d8"
down_revision: str | Sequence[str] | None = "c7e41d90b5f2"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("memos", "place", "sort_key"),
    ("swipes", "place", "swipe_index"),
    ("scenes", "cut_off", "truncated"),
)
_NAMES = (
    ("INDEX", "ix_memos_place", "ix_memos_sort_key"),
    ("swipes", "ck_swipes_place", "ck_swipes_swipe_index"),
    ("scenes", "ck_scenes_cut_off", "ck_scenes_truncated"),
)


def upgrade() -> None:
    for table, former, name in _COLUMNS:
        _rename_column(table, former, name)
    for owner, former, name in _NAMES:
        _rename(owner, former, name)
    _rename_in_memo_windows("place", "sort_key")


def downgrade() -> None:
    _rename_in_memo_windows("sort_key", "place")
    for owner, former, name in _NAMES:
        _rename(owner, name, former)
    for table, former, name in _COLUMNS:
        _rename_column(table, name, former)


def _rename(owner: str, former: str, name: str) -> None:
    """Rename an index, or a constraint of the table `owner`."""
    if owner == "INDEX":
        op.execute(f"ALTER INDEX {former} RENAME TO {name}")
    else:
        op.execute(f"ALTER TABLE {owner} RENAME CONSTRAINT {former} TO {name}")


def _rename_column(table: str, former: str, name: str) -> None:
    """Rename a column and, from PostgreSQL 18 on, its NOT NULL constraint, if it has one."""
    op.alter_column(table, former, new_column_name=name)
    op.execute(
        f"""
        DO $$ BEGIN
            ALTER TABLE {table} RENAME CONSTRAINT {table}_{former}_not_null TO {table}_{name}_not_null;
        EXCEPTION WHEN undefined_object THEN NULL;
        END $$
        """
    )


def _rename_in_memo_windows(former: str, name: str) -> None:
    """Rename a key of the memos in the cached memo window of every line."""
    for part in ("memos", "pinned"):
        op.execute(
            f"""
            UPDATE chats SET context_cache = jsonb_set(context_cache, '{{memos,{part}}}', (
                SELECT coalesce(
                    jsonb_agg(memo - '{former}' || jsonb_build_object('{name}', memo -> '{former}') ORDER BY nth), '[]'
                )
                FROM jsonb_array_elements(context_cache -> 'memos' -> '{part}') WITH ORDINALITY AS m (memo, nth)
            ))
            WHERE jsonb_typeof(context_cache -> 'memos' -> '{part}') = 'array'
            """  # noqa: S608 - constants only
        )
