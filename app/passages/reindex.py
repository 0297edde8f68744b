"""Makes the vectors that a model lacks, in all chats, while the service runs."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from app.chats.heads import lock_line
from app.chats.revision import record_nothing
from app.embeddings.metered import meter
from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.job_context import TextEmbedder
from app.passages import queries, text_queries
from app.passages.embedding import embed_texts
from app.passages.progress import NAME
from app.passages.queries import Line, Text
from app.passages.texts import MOST_TEXTS, find_lacking, save_text_vectors
from app.passages.vectors import Row, make_vectors

_LINES = 1_000
"""How many lines are read at once."""

_MESSAGES = 64
"""How many messages get vectors at once."""


@dataclass(slots=True)
class Counts:
    """What was done so far: chats read, messages and layers' texts with new vectors, texts refused, vectors deleted."""

    chats: int = 0
    messages: int = 0
    texts: int = 0
    refused: int = 0
    deleted: int = 0


class Reindexer:
    """Gives vectors of one model to the messages and texts of layers that searches can find, on all current lines.

    Texts that have a vector keep it, so a second run continues where the first one ended.

    A line is locked only while its vectors are written, never while the model is asked. The stored progress of each
    line (`progress.py`) does not change: it belongs to the model that searches use, which can be another one.

    Args:
        database: The database.
        clock: The service's clock.
        embedder: The model.
        model_id: The id under which it is recorded.
        concurrency: How many chats are read at once.
        report: Called after each chat with what was done so far.

    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        embedder: TextEmbedder,
        model_id: int,
        *,
        concurrency: int,
        report: Callable[[Counts], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._embedder = embedder
        self._model_id = model_id
        self._concurrency = concurrency
        self._report = report

    async def run(self, *, deletes_others: bool = False) -> Counts:
        """Make the missing vectors of all chats, and delete those of other models if `deletes_others`.

        Raises ModelError if the model is unavailable. Texts that it refuses get no vector.
        """
        counts, after = Counts(), UUID(int=0)
        while True:
            async with self._database.raw() as connection:
                lines = await queries.list_current_lines(connection, after, _LINES)
            rest = iter(lines)
            try:
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(self._concurrency):
                        tasks.create_task(self._make(rest, counts, deletes_others=deletes_others))
            except ExceptionGroup as group:
                raise group.exceptions[0] from None
            if len(lines) < _LINES:
                return counts
            (after, _), _ = lines[-1]

    async def _make(self, lines: Iterator[tuple[Line, str]], counts: Counts, *, deletes_others: bool) -> None:
        """Make the vectors of lines, one after the other."""
        for line, tenant in lines:
            embedder = meter(self._embedder, self._database, self._clock, tenant=tenant, layer=NAME)
            await self._make_of_line(line, embedder, counts)
            await self._make_of_texts(line, embedder, counts)
            if deletes_others:
                async with self._database.unit_of_work() as db_session:
                    for delete in (queries.delete_vectors_of_others, text_queries.delete_of_others):
                        counts.deleted += await delete(db_session.raw, line[0], self._model_id)
            counts.chats += 1
            self._report(counts)

    async def _make_of_line(self, line: Line, embedder: TextEmbedder, counts: Counts) -> None:
        seq = 0
        while True:
            async with self._database.raw() as connection:
                texts = await queries.list_without_vectors(connection, line, self._model_id, seq, _MESSAGES)
                speakers = await queries.read_speakers(connection, line) if texts else {}
            if not texts:
                return
            seq = texts[-1].seq
            rows = await make_vectors(embedder, texts, speakers)
            made = {message_id for message_id, *_ in rows}
            counts.refused += sum(text.message_id not in made for text in texts if text.text.strip())
            counts.messages += await self._add(line, texts, rows) if rows else 0

    async def _make_of_texts(self, line: Line, embedder: TextEmbedder, counts: Counts) -> None:
        """Make the vectors of the layers' texts, until only texts that the model refuses have none."""
        refused: set[bytes] = set()
        while True:
            async with self._database.raw() as connection:
                lacking = await find_lacking(connection, line, self._model_id, self._clock())
            missing = [digest for digest in lacking.missing if digest not in refused][:MOST_TEXTS]
            if not missing:
                break
            rows = await embed_texts(embedder, {digest: lacking.missing[digest] for digest in missing})
            made = {digest for digest, *_ in rows}
            refused |= set(missing) - made
            async with self._database.unit_of_work() as db_session:
                if await lock_line(db_session, *line) is None:
                    return
                record_nothing(db_session, line)
                await save_text_vectors(db_session.raw, line, self._model_id, rows, self._clock())
            counts.texts += len(made)
        counts.refused += len(refused)

    async def _add(self, line: Line, texts: list[Text], rows: list[Row]) -> int:
        """Add the vectors of texts that the line still has, and return the number of their messages."""
        async with self._database.unit_of_work() as db_session:
            if await lock_line(db_session, *line) is None:
                return 0
            record_nothing(db_session, line)
            digests = await queries.list_digests(db_session.raw, line, [text.seq for text in texts])
            kept = {text.message_id for text in texts if digests.get(text.seq) == text.digest}
            if rows := [row for row in rows if row[0] in kept]:
                await queries.add_vectors(db_session.raw, line[0], self._model_id, rows)
        return len({message_id for message_id, *_ in rows})
