"""The jobs that give vectors to the texts of the layers, so that they are found by their meaning.

`EMBED_TEXTS` compares the texts of the current line with the stored vectors. It deletes the vectors of texts that are
gone, and makes those that are missing. Before it saves, it compares again under the line's lock, because a text that
the user's chats share can be forgotten without any change of this chat. `COMPARE_ALL` schedules `EMBED_TEXTS` in
several chats.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.chats.heads import lock_line, read_head
from app.embeddings.service import ModelDiffers, get_current
from app.kit.db import Connection, DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.job import Job, LeftToOthers, Made
from app.layers.layer import Layer
from app.passages import text_queries
from app.passages.embedding import embed_texts
from app.passages.handlers import GONE, TEXTS, schedule_next
from app.passages.text_queries import Line

Row = tuple[bytes, int, str]
"""The digest of a text, the number of the part, and its vector as text."""

MOST_TEXTS = 32
"""How many texts get vectors in one run of a job. If a text is gone when the run ends, its vector is not saved."""

_NO_MODEL = 0  # no model has this id

_statement = ""  # `text_queries.write_texts` of the layers of this process


def embed_texts_of(layers: Sequence[Layer]) -> None:
    """Include the texts of these layers in the jobs of this process. Called by `app/registry.py`."""
    global _statement
    _statement = text_queries.write_texts(layers)


@dataclass(frozen=True, slots=True)
class Lacking:
    """How the vectors of a chat differ from the texts of its current line.

    Attributes:
        missing: The texts without a vector of the model, by digest.
        gone: The digests of vectors whose texts are gone.

    """

    missing: Mapping[bytes, str]
    gone: frozenset[bytes]

    def choose(self) -> dict[bytes, str]:
        """Return at most MOST_TEXTS missing texts, or none while vectors have to be deleted.

        The choice is random, so that texts which the model refuses do not block the others. Deletions come first, so
        that they do not wait for the model.
        """
        if self.gone:
            return {}
        return {
            digest: self.missing[digest]
            for digest in random.sample(sorted(self.missing), min(MOST_TEXTS, len(self.missing)))
        }


async def find_lacking(connection: Connection, line: Line, model_id: int, now: datetime) -> Lacking:
    """Compare the layers' texts of a line with the chat's vectors."""
    texts: dict[bytes, str | None] = {}
    if _statement:
        texts = await text_queries.list_texts(connection, _statement, line, model_id, now)
    missing = {digest: text for digest, text in texts.items() if text is not None and text.strip()}
    return Lacking(missing, frozenset(await text_queries.list_stored(connection, line[0]) - texts.keys()))


async def save_text_vectors(
    connection: Connection, line: Line, model_id: int, rows: Sequence[Row], now: datetime
) -> Lacking:
    """Delete the vectors of texts that are gone, and add those of `rows` whose vectors are still missing.

    The caller has locked the line. Return what was lacking before.
    """
    lacking = await find_lacking(connection, line, model_id, now)
    if lacking.gone:
        await text_queries.delete(connection, line[0], lacking.gone)
    if wanted := [row for row in rows if row[0] in lacking.missing]:
        await text_queries.add(connection, line[0], model_id, wanted)
    return lacking


@dataclass(frozen=True, slots=True)
class _Next:
    """The texts that get vectors now.

    Attributes:
        model_id: The model; None if none is configured, so that vectors can only be deleted.
        texts: The texts by digest; none if vectors have to be deleted first.

    """

    model_id: int | None
    texts: Mapping[bytes, str]


async def _read(ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Next | None:
    """Return the next texts; None if there is nothing to make or to delete, or the line is gone or not current."""
    line = claimed.owner.line
    head = await read_head(db_session, *line)
    if head is None or not head.is_current:
        return None
    if ctx.embedder is None:
        gone = (await find_lacking(db_session.raw, line, _NO_MODEL, ctx.clock())).gone
        return _Next(None, {}) if gone else None
    try:
        model_id = (await get_current(ctx.database, ctx.embedder, ctx.clock)).model_id
    except ModelDiffers as error:
        raise LeftToOthers(f"{error}; restart this worker with the settings of the current model") from None
    lacking = await find_lacking(db_session.raw, line, model_id, ctx.clock())
    return _Next(model_id, lacking.choose()) if lacking.missing or lacking.gone else None


async def _draft(ctx: JobContext, _claimed: Claimed, source: _Next) -> list[Row]:
    """Return the vectors of the texts. Raises ModelError."""
    return await embed_texts(ctx.embedder, source.texts) if ctx.embedder is not None else []


async def _is_unchanged(_db_session: DbSession, made: Made[_Next, list[Row]]) -> bool | None:
    """Return True, or None if another line became the current one. `_save` compares the texts again."""
    return True if made.head.is_current else None


async def _save(db_session: DbSession, made: Made[_Next, list[Row]]) -> None:
    """Add and delete vectors, and schedule the next run if texts without vectors are left.

    No run is scheduled if no model is configured, or if the model refused all texts of this run.
    """
    head, source = made.head, made.source
    model_id = _NO_MODEL if source.model_id is None else source.model_id
    lacking = await save_text_vectors(db_session.raw, head.line, model_id, made.draft, made.now)
    made_now = {digest for digest, *_ in made.draft}
    is_stuck = source.model_id is None or (source.texts and not made_now)
    if lacking.missing.keys() - made_now and not is_stuck:
        await schedule_next(db_session, head, TEXTS, now=made.now)


EMBED_TEXTS = Job(prefix=TEXTS, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)


async def _read_lines(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> list[Line] | None:
    """Return the current lines of the user's or the tenant's chats that have vectors."""
    return await text_queries.list_lines(db_session.raw, claimed.owner) or None


async def _schedule_each(ctx: JobContext, _claimed: Claimed, source: list[Line]) -> None:
    """Schedule the comparison, chat by chat, each in a transaction of its own; nothing is left to save."""
    for line in source:
        async with ctx.database.unit_of_work() as db_session:
            head = await lock_line(db_session, *line)
            if head is not None:
                await schedule_next(db_session, head, TEXTS, now=ctx.clock())


async def _save_nothing(_db_session: DbSession, _made: Made[list[Line], None]) -> None:
    """Do nothing: the runner never calls this, because the draft is None."""


COMPARE_ALL = Job(prefix=GONE, read=_read_lines, draft=_schedule_each, save=_save_nothing)
"""After a chat was erased, schedules the comparison in the other chats of its user or tenant."""
