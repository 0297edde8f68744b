"""Commands on the summary: read, write, choose a version, regenerate.

Each *version* was written by a person, or made by a fold. A *step* is the range of messages that one fold added. A
*kept text* is a text of a person that all later versions contain word for word.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.models import ChatLine
from app.chats.scheduling import get_scheduled, unschedule
from app.chats.service import get_line
from app.chats.settings import effective
from app.kit.db import DbSession, defer
from app.kit.wire import MAX_SEQ
from app.layers.in_prompt import list_sources
from app.narratives import service as narratives
from app.narratives.chain import Link
from app.narratives.service import ListedVersion
from app.summary.errors import NothingToFold, SummaryEdited
from app.summary.next_fold import (
    FOLD,
    NAME,
    SUMMARY,
    begin,
    discard,
    find_range,
    read_before_replaced,
    reconcile_fold_work,
    schedule_fold,
)
from app.summary.segment import contribute, source_of
from app.summary.settings import SummarySettings


async def get_summary(db_session: DbSession, ref: ChatRef, *, line: UUID | None = None) -> ListedVersion | None:
    """Return the latest valid version, or None if there is none. Raises ChatNotFound, LineNotFound.

    While the summary is off, the latest version by a person is preferred: contexts then contain only versions by
    a person.
    """
    chat = await get_line(db_session, ref, line)
    line_key = (ref.key, chat.line_id)
    enabled = SummarySettings.of(effective(chat.settings)).enabled
    chain = await narratives.read_chain(db_session, line_key, SUMMARY, from_unit=MAX_SEQ if enabled else 1)
    link = chain.latest_valid(by_person=not enabled) or chain.latest_valid()
    if link is None:
        return None
    version = await narratives.read_version(db_session, line_key, SUMMARY, link.version)
    return ListedVersion(version, chain.is_stale(link.version), link.version == _shown(chat))


async def list_versions(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None, before: int | None, limit: int
) -> list[ListedVersion]:
    """Return a page of versions, newest first. Raises ChatNotFound, LineNotFound."""
    chat = await get_line(db_session, ref, line)
    line_key = (ref.key, chat.line_id)
    return await narratives.list_versions(db_session, line_key, SUMMARY, shown=_shown(chat), before=before, limit=limit)


async def get_version(db_session: DbSession, ref: ChatRef, version: int, *, line: UUID | None) -> ListedVersion:
    """Return one version. Raises ChatNotFound, LineNotFound, VersionNotFound."""
    chat = await get_line(db_session, ref, line)
    return await narratives.get_version(db_session, (ref.key, chat.line_id), SUMMARY, version, shown=_shown(chat))


async def write_summary(db_session: DbSession, ref: ChatRef, text: str, *, keep: bool, now: datetime) -> None:
    """Replace the summary by a person's text. Raises ChatNotFound.

    With `keep`, later versions contain the text unchanged; otherwise later folds may change its words.
    """
    head = await lock_head(db_session, ref)
    begin(head)
    line = head.line
    await narratives.write_version(db_session, line, SUMMARY, text, keep=keep, begins_seq=0, now=now)
    await reconcile_fold_work(db_session, head, now=now, settle_s=db_session.settle_s)
    defer(db_session, LayerChanged(head, NAME))


async def choose_version(db_session: DbSession, ref: ChatRef, version: int, *, now: datetime) -> None:
    """Make a version the current one, and schedule a fold if messages after it are due; later versions are kept.

    Cancels a fold that a person asked for. Raises ChatNotFound, VersionNotFound.
    """
    head = await lock_head(db_session, ref)
    await narratives.make_current(db_session, head.line, SUMMARY, version)
    await unschedule(db_session, head, NAME, [FOLD])
    await reconcile_fold_work(db_session, head, now=now, settle_s=db_session.settle_s)
    defer(db_session, LayerChanged(head, NAME))


async def regenerate_summary(
    db_session: DbSession, ref: ChatRef, *, instruction: str | None, replace_edited: bool, now: datetime
) -> UUID:
    """Schedule the newest fold again, or the first one if there is none, without delay; return the work item's id.

    With `replace_edited`, a text that a person wrote is replaced, too; otherwise a kept text stays.

    Raises ChatNotFound, SummaryEdited if a person wrote the newest version and `replace_edited` is false, and
    NothingToFold if there is no fold to make again and no message is due to be folded.
    """
    head = await lock_head(db_session, ref)
    begin(head)
    chain = await narratives.read_chain(db_session, head.line, SUMMARY)
    newest = chain.latest_valid()
    if newest and newest.origin == "person" and not replace_edited:
        raise SummaryEdited("A person wrote the summary; send replace_edited: true to replace it.")
    replaces_kept = newest is not None and newest.has_kept and replace_edited
    discarded: Sequence[Link] = ()
    if newest and not newest.has_step:
        chain, discarded = await read_before_replaced(db_session, head, newest, replaces_kept=replaces_kept)
    again = chain.latest_valid()
    if again is None and await find_range(db_session, head, chain) is None:
        raise NothingToFold("No message is due to be summarised yet.")
    if discarded:
        await discard(db_session, head, discarded, again, now=now)
    payload = {"instruction": instruction, "again": again.version if again else None, "replaces_kept": replaces_kept}
    at_seq = again.first_unit if again else 1
    await schedule_fold(db_session, head, at_seq=at_seq, now=now, settle_s=0, payload=payload)
    defer(db_session, LayerChanged(head, NAME))
    return (await get_scheduled(db_session, head, NAME, FOLD)).work_id


def _shown(chat: ChatLine) -> int | None:
    """Return the version that contexts of the line contain, or None."""
    version: int | None = chat.context_cache.get(NAME, {}).get("version")
    return version if source_of(version) in list_sources(contribute, chat, NAME) else None
