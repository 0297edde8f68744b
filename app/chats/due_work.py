"""The due work of a layer on a line, found by the line's head."""

from collections.abc import Sequence
from datetime import datetime

from app.chats.head import Head
from app.kit import due
from app.kit.db import DbSession, defer


async def make_due(
    db_session: DbSession, head: Head, layer: str, items: Sequence[due.Due], *, now: datetime, settle_s: float
) -> None:
    """Make `items` due after the settle time and ring; see `kit.due.add_due` for those that are due already.

    On a line that is not current, as where a job ends after its line was left, they rest until it is current again.
    """
    await due.add_due(
        db_session,
        tenant=head.tenant,
        chat_key=head.chat_key,
        line_id=head.line_id,
        layer=layer,
        items=items,
        now=now,
        settle_s=settle_s,
        rests=not head.is_current,
    )
    defer(db_session, "work_due", head.chat_key)


async def find_due(db_session: DbSession, head: Head, layer: str, key: str) -> due.Work | None:
    """What is due under a key, or has failed for good."""
    return await due.find_work(db_session, chat_key=head.chat_key, line_id=head.line_id, layer=layer, key=key)


async def forget_unasked(db_session: DbSession, head: Head, layer: str, keys: Sequence[str]) -> None:
    """Forget what is due under `keys`, but for what a person asked for."""
    await due.forget_unasked(db_session, chat_key=head.chat_key, line_id=head.line_id, layer=layer, keys=keys)


async def delete_due(db_session: DbSession, head: Head, layer: str, keys: Sequence[str]) -> None:
    """Forget what is due under `keys`; whoever is making it finds no lease."""
    await due.delete_work(db_session, chat_key=head.chat_key, line_id=head.line_id, layer=layer, keys=keys)
