"""The verbs of the summary: what people read, write, and have made again."""

from datetime import datetime
from uuid import UUID

from app.chats.service import ChatRef, get_line, lock_head
from app.chats.settings import effective
from app.kit.db import DbSession, defer
from app.kit.wire import MAX_SEQ
from app.narratives import service as narratives
from app.narratives.models import NarrativeVersion
from app.summary.errors import SummaryEdited
from app.summary.layer import SUMMARY, begin, find_range, judge, make_fold_due


async def get_summary(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None = None
) -> tuple[NarrativeVersion, bool] | None:
    """The newest version that is true, and whether a person's is stale; None before the first. Raises ChatNotFound.

    While the summary is off a person's goes before, as that alone is in contexts.
    """
    chat = await get_line(db_session, ref, line)
    place = (ref.key, chat.line_id)
    enabled = effective(chat.settings).summary.enabled
    chain = await narratives.read_chain(db_session, place, SUMMARY, from_place=MAX_SEQ if enabled else 1)
    link = chain.newest_true(by_person=not enabled) or chain.newest_true()
    if link is None:
        return None
    return await narratives.read_version(db_session, place, SUMMARY, link.version), chain.is_stale(link.version)


async def list_versions(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None, before: int | None, limit: int
) -> list[tuple[NarrativeVersion, bool]]:
    """A page of versions, newest first, each with whether it is stale. Raises ChatNotFound."""
    chat = await get_line(db_session, ref, line)
    return await narratives.list_versions(db_session, (ref.key, chat.line_id), SUMMARY, before=before, limit=limit)


async def write_summary(db_session: DbSession, ref: ChatRef, text: str, *, now: datetime, settle_s: float) -> None:
    """Put a person's text in the place of the summary: the next fold builds on it. Raises ChatNotFound."""
    head = await lock_head(db_session, ref)
    begin(head)
    line = head.line
    await narratives.write_version(db_session, line, SUMMARY, text, begins_seq=0, now=now)
    await judge(db_session, head, now=now, settle_s=settle_s)
    defer(db_session, "layer_settled", head)


async def regenerate_summary(
    db_session: DbSession, ref: ChatRef, *, instruction: str | None, replace_edited: bool, now: datetime
) -> None:
    """Have the newest fold made again now, or the first one made.

    Where there is nothing to make it of, because everything is still in the history, all stays as it is.
    Raises ChatNotFound, and SummaryEdited for a person's text unless `replace_edited`.
    """
    head = await lock_head(db_session, ref)
    begin(head)
    line = head.line
    chain = await narratives.read_chain(db_session, line, SUMMARY)
    newest = chain.newest_true()
    if newest and newest.origin == "person" and not replace_edited:
        raise SummaryEdited("A person wrote the summary; send replace_edited: true to have it written anew.")
    again = newest
    if newest and newest.last_place < newest.first_place:  # it took no fold's place, so what is before it stands again
        before = await narratives.read_before(db_session, line, SUMMARY, newest)
        again = before.newest_true()
        if again is None and await find_range(db_session, head, before) is None:
            return
        if again is None:
            await narratives.begin_anew(db_session, line, SUMMARY)
        else:
            await narratives.make_current(db_session, line, SUMMARY, again.version)
        await narratives.drop_replaced(db_session, line, SUMMARY, newest, now=now)
    elif newest is None and await find_range(db_session, head, chain) is None:
        return
    payload = {"instruction": instruction, "again": again.version if again else None}
    await make_fold_due(
        db_session, head, at_seq=again.first_place if again else 1, now=now, settle_s=0, payload=payload
    )
    defer(db_session, "layer_settled", head)
