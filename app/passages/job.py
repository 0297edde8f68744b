"""The job that puts the next messages of a line into the index of words."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.chats.heads import read_head
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.job import Job, Made
from app.passages import queries
from app.passages.handlers import INDEX, schedule_next
from app.passages.keys import hash_keys, list_keys, name_analysis
from app.passages.progress import EVERY_MESSAGES, NAME, Progress
from app.passages.queries import Text

Row = tuple[str, bytes, Sequence[int]]
"""The id of a message, its digest, and its keys as numbers."""


@dataclass(frozen=True, slots=True)
class _Next:
    """The messages to put into the index: those after `progress`, and earlier ones that have changed.

    If `remakes`, they are messages that are in the index already, but with another analysis (`name_analysis`).
    """

    progress: Progress
    texts: Sequence[Text]
    language: str | None
    remakes: bool = False

    @property
    def last_seq(self) -> int:
        return max((text.seq for text in self.texts), default=self.progress.seq)


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Next | None:
    """Return the messages to index; None if nothing has to be added or deleted, or the line is gone or not current."""
    line = claimed.owner.line
    head = await read_head(db_session, *line)
    if head is None or not head.is_current:
        return None
    progress, language = Progress.of(head), await queries.read_language(db_session.raw, line)
    remade = progress.remade_from(name_analysis(language))
    if remade is not None:
        texts = await queries.list_next(db_session.raw, line, remade, ())
        return _Next(progress, [text for text in texts if text.seq <= progress.seq], language, remakes=True)
    texts = await queries.list_next(db_session.raw, line, progress.seq, progress.changed)
    if not texts and not progress.has_leftovers:
        return None
    return _Next(progress, texts, language)


async def _draft(_ctx: JobContext, claimed: Claimed, source: _Next) -> list[Row]:
    return await asyncio.to_thread(_list_rows, claimed.owner.line[0], source)


def _list_rows(chat_key: UUID, source: _Next) -> list[Row]:
    keys = [(one, list_keys(one.text, source.language)) for one in source.texts if one.text]
    return [(one.message_id, one.digest, hash_keys(chat_key, of_text)) for one, of_text in keys if of_text]


async def _is_unchanged(db_session: DbSession, made: Made[_Next, list[Row]]) -> bool | None:
    """Return whether the progress and the texts are as they were read; None if another line became the current one.

    Only the current line may write. The lock on it keeps other lines of the chat from becoming current meanwhile. So no
    line deletes rows as leftovers while another line adds the same rows.
    """
    if not made.head.is_current:
        return None
    if Progress.of(made.head) != made.source.progress:
        return False
    read = {text.seq: text.digest for text in made.source.texts}
    return read == await queries.list_digests(db_session.raw, made.head.line, list(read))


async def _save(db_session: DbSession, made: Made[_Next, list[Row]]) -> None:
    """Add the new rows, delete the rows of texts that are gone, and schedule the next run if messages are left."""
    head, source, analysis = made.head, made.source, name_analysis(made.source.language)
    await queries.add(db_session.raw, head.chat_key, made.draft)
    await queries.forget_other_analyses(db_session.raw, head.line, analysis)
    if source.remakes:
        progress = source.progress.made_again(source.last_seq, analysis)
        head.cursors[NAME] = progress.to_json(head.chat_key)
        await schedule_next(db_session, head, INDEX, now=made.now)
        return
    changed = set(source.progress.changed)
    if source.progress.has_leftovers:
        await queries.delete_leftovers(db_session.raw, head.chat_key)
    elif changed:
        ids = [text.message_id for text in source.texts if text.seq in changed]
        await queries.delete_leftovers(db_session.raw, head.chat_key, ids)
    progress = source.progress.indexed(source.last_seq, changed, analysis)
    head.cursors[NAME] = progress.to_json(head.chat_key)
    if head.head_seq - progress.seq >= EVERY_MESSAGES:
        await schedule_next(db_session, head, INDEX, now=made.now)


INDEX_MESSAGES = Job(prefix=INDEX, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
