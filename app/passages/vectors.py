"""The job that gives vectors to the next messages of a line, so that they are found by their meaning."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.chats.characters import word_spoken
from app.chats.heads import read_head
from app.embeddings.service import ModelDiffers, get_current
from app.kit.db import DbSession
from app.kit.job_context import JobContext, TextEmbedder
from app.kit.work_queue import Claimed
from app.layers.job import Job, LeftToOthers, Made
from app.passages import queries
from app.passages.embedding import embed_texts
from app.passages.handlers import schedule_next
from app.passages.progress import VECTORS, Progress
from app.passages.queries import Text

Row = tuple[str, bytes, int, str]
"""The id of a message, its digest, the number of the part, and its vector as text."""


@dataclass(frozen=True, slots=True)
class _Next:
    """The messages that get vectors: the next ones after `progress`, and earlier ones that have changed since.

    Attributes:
        former: The progress as it is stored.
        progress: The same, or the beginning if `former` is the progress of another model.
        texts: The messages.
        speakers: By role, the name that a message gets if it has none of its own.
        known: (message id, digest) of texts that have a vector already.

    """

    former: Progress
    progress: Progress
    texts: Sequence[Text]
    speakers: dict[str, str]
    known: set[tuple[str, bytes]]

    @property
    def last_seq(self) -> int:
        return max((text.seq for text in self.texts), default=self.progress.seq)


async def _read(ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Next | None:
    """Return the next messages of the line, and which of their texts have vectors already.

    Return None if there are no such messages, if no model is configured, or if the line is gone or not current.
    """
    line = claimed.owner.line
    head = await read_head(db_session, *line)
    if head is None or not head.is_current or ctx.embedder is None:
        return None
    try:
        model_id = (await get_current(ctx.database, ctx.embedder, ctx.clock)).model_id
    except ModelDiffers as error:
        raise LeftToOthers(f"{error}; restart this worker with the settings of the current model") from None
    former = Progress.of(head, VECTORS)
    progress = former if former.model_id == model_id else Progress(model_id=model_id)
    texts = await queries.list_next(db_session.raw, line, progress.seq, progress.changed)
    if not texts:
        return None
    known = await queries.list_with_vectors(db_session.raw, head.chat_key, model_id, texts)
    return _Next(former, progress, texts, await queries.read_speakers(db_session.raw, line), known)


async def _draft(ctx: JobContext, _claimed: Claimed, source: _Next) -> list[Row]:
    """Return the vectors of the texts that have none. Raises ModelError."""
    assert ctx.embedder is not None
    texts = [text for text in source.texts if (text.message_id, text.digest) not in source.known]
    return await make_vectors(ctx.embedder, texts, source.speakers)


async def make_vectors(embedder: TextEmbedder, texts: Iterable[Text], speakers: Mapping[str, str]) -> list[Row]:
    """Return the vectors of texts; those that are blank or that the model refuses get none. Raises ModelError.

    `speakers` has, by role, the name that a message gets if it has none of its own.
    """
    spoken = {
        (text.message_id, text.digest): word_spoken(text.text, text.role, text.name, speakers)
        for text in texts
        if text.text.strip()
    }
    return [(*key, number, vector) for key, number, vector in await embed_texts(embedder, spoken)]


async def _is_unchanged(db_session: DbSession, made: Made[_Next, list[Row]]) -> bool | None:
    """Return whether the messages still have the texts that were read; None if another line became the current one."""
    if not made.head.is_current:
        return None
    if Progress.of(made.head, VECTORS) != made.source.former:
        return False
    read = {text.seq: text.digest for text in made.source.texts}
    return read == await queries.list_digests(db_session.raw, made.head.line, list(read))


async def _save(db_session: DbSession, made: Made[_Next, list[Row]]) -> None:
    """Add the vectors, delete those of texts that are gone, and continue if there are more messages.

    Vectors of other models stay: other processes may search them, or `memobook reindex` is making them.
    """
    head, source = made.head, made.source
    model_id = source.progress.model_id
    assert model_id is not None
    if made.draft:
        await queries.add_vectors(db_session.raw, head.chat_key, model_id, made.draft)
    changed = set(source.progress.changed)
    if source.former.has_leftovers or source.former.model_id != model_id:
        await queries.delete_leftover_vectors(db_session.raw, head.chat_key)
    elif changed:
        ids = [text.message_id for text in source.texts if text.seq in changed]
        await queries.delete_leftover_vectors(db_session.raw, head.chat_key, ids)
    progress = replace(source.progress.indexed(source.last_seq, changed), has_leftovers=False)
    head.cursors[VECTORS] = progress.to_json(head.chat_key)
    if progress.seq < head.head_seq:
        await schedule_next(db_session, head, VECTORS, now=made.now)


EMBED_MESSAGES = Job(prefix=VECTORS, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
