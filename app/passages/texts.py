"""The job that gives vectors to the texts of the layers, so that they are found by their meaning.

It is scheduled whenever a layer's texts may have changed. It then compares the texts of the current line with the
vectors that there are: it makes those that are missing, and deletes those of texts that are gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.chats.heads import read_head
from app.embeddings.service import ModelDiffers, get_current
from app.embeddings.vectors import format_halfvec
from app.kit.db import Connection, DbSession
from app.kit.job_context import JobContext, TextEmbedder
from app.kit.work_queue import Claimed
from app.layers.job import Job, LeftToOthers, Made
from app.layers.layer import Layer
from app.passages import text_queries
from app.passages.handlers import GONE, TEXTS, schedule_next
from app.passages.parts import divide
from app.passages.text_queries import Line

Row = tuple[bytes, int, str]
"""The digest of a text, the number of the part, and its vector as text."""

Gone = dict[UUID, set[bytes]]
"""The digests of vectors whose texts are gone, by the chat's key."""

_MOST = 100
"""How many texts get vectors at once."""

_NO_MODEL = 0

_statements: list[str] = []  # `text_queries.write_texts` of the layers of this process


def embed_texts_of(layers: Sequence[Layer]) -> None:
    """Give the texts of these layers vectors in this process. Called by `app/registry.py`."""
    _statements[:] = [statement] if (statement := text_queries.write_texts(layers)) else []


@dataclass(frozen=True, slots=True)
class Lacking:
    """What the vectors of the current line's texts lack.

    Attributes:
        model_id: The model.
        texts: Texts without a vector, by digest; at most _MOST.
        gone: The digests of vectors whose texts are gone.
        is_all: Whether `texts` are all texts without a vector.

    """

    model_id: int
    texts: dict[bytes, str]
    gone: set[bytes]
    is_all: bool


async def find_lacking(connection: Connection, line: Line, model_id: int, now: datetime) -> Lacking:
    """Compare the layers' texts of a line with the chat's vectors."""
    texts: dict[bytes, str | None] = {}
    for statement in _statements:
        texts = await text_queries.list_texts(connection, statement, line, model_id, now)
    missing = [(digest, text) for digest, text in texts.items() if text is not None]
    gone = await text_queries.list_stored(connection, line[0]) - texts.keys()
    return Lacking(model_id, dict(missing[:_MOST]), gone, len(missing) <= _MOST)


async def make_text_vectors(embedder: TextEmbedder, texts: dict[bytes, str]) -> list[Row]:
    """Return the vectors of texts, given by digest. Raises ModelError."""
    parts = [(digest, number, part) for digest, text in texts.items() for number, part in enumerate(divide(text))]
    if not parts:
        return []
    made = await embedder.embed([part for _, _, part in parts])
    return [
        (digest, number, format_halfvec(vector))
        for (digest, number, _), vector in zip(parts, made.vectors, strict=True)
    ]


async def _read(ctx: JobContext, db_session: DbSession, claimed: Claimed) -> Lacking | None:
    """Return what is lacking; None if nothing is, if there is no model, or the line is gone or not current."""
    line = claimed.owner.line
    head = await read_head(db_session, *line)
    if head is None or not head.is_current or ctx.embedder is None:
        return None
    try:
        model_id = (await get_current(ctx.database, ctx.embedder, ctx.clock)).model_id
    except ModelDiffers as error:
        raise LeftToOthers(f"{error}; restart this worker with the settings of the current model") from None
    lacking = await find_lacking(db_session.raw, line, model_id, ctx.clock())
    return lacking if lacking.texts or lacking.gone else None


async def _draft(ctx: JobContext, _claimed: Claimed, source: Lacking) -> list[Row]:
    """Return the vectors of the texts that have none. Raises ModelError."""
    assert ctx.embedder is not None
    return await make_text_vectors(ctx.embedder, source.texts)


async def _is_unchanged(_db_session: DbSession, made: Made[Lacking, list[Row]]) -> bool | None:
    """Return True, or None if another line became the current one.

    Whatever changes a text schedules the work item again, and then nothing is saved.
    """
    return True if made.head.is_current else None


async def _save(db_session: DbSession, made: Made[Lacking, list[Row]]) -> None:
    """Add the vectors, delete those of texts that are gone, and continue if more texts have none."""
    head, source = made.head, made.source
    if made.draft:
        await text_queries.add(db_session.raw, head.chat_key, source.model_id, made.draft)
    if source.gone:
        await text_queries.delete(db_session.raw, head.chat_key, source.gone)
    if not source.is_all:
        await schedule_next(db_session, head, TEXTS, now=made.now)


EMBED_TEXTS = Job(prefix=TEXTS, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)


async def _read_gone(ctx: JobContext, db_session: DbSession, claimed: Claimed) -> Gone | None:
    """Return the vectors whose texts are gone, in all chats of the user or the tenant."""
    gone: Gone = {}
    for line in await text_queries.list_lines(db_session.raw, claimed.owner):
        lacking = await find_lacking(db_session.raw, line, _NO_MODEL, ctx.clock())
        if lacking.gone:
            gone[line[0]] = lacking.gone
    return gone or None


async def _keep(_ctx: JobContext, _claimed: Claimed, source: Gone) -> Gone:
    return source


async def _delete_gone(db_session: DbSession, made: Made[Gone, Gone]) -> None:
    for chat_key, digests in sorted(made.source.items()):
        await text_queries.delete(db_session.raw, chat_key, digests)


DELETE_GONE = Job(prefix=GONE, read=_read_gone, draft=_keep, save=_delete_gone)
"""Deletes the vectors of texts that the user's or the tenant's other chats no longer know, after a chat was erased."""
