"""A layer that lives in the tests: how many words each speaker says, counted every ten messages.

`docs/layers.md` walks through it.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import asyncpg
import orjson
from fastapi import APIRouter
from pydantic import BaseModel, Field
from sqlalchemy import MetaData, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.chats.coverage import Coverage
from app.chats.deps import Line, ReadingChat
from app.chats.eligibility import Filters
from app.chats.events import LineTruncated, MessagesAppended, MessagesChanged, SettingsChanged
from app.chats.head import Head
from app.chats.scheduling import unschedule
from app.chats.service import get_line
from app.chats.settings import LayerSettings, PlacementSettings
from app.kit import work_queue
from app.kit.db import DbSession, Table
from app.kit.deps import Db
from app.kit.job_context import JobContext, PromptTemplate
from app.kit.llm.client import ChatMessage
from app.kit.owners import Owner, OwnerErased
from app.kit.tokens import count_tokens
from app.kit.work_queue import Claimed, NewWork
from app.layers.ask import Inquiry, NoUsableAnswer, ask_model
from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, TrimGroup, View, placement_of
from app.layers.derived import DerivedRow, MessageRangeColumns, rehash, reschedule, schedule_unscheduled
from app.layers.job import Job, Made
from app.layers.layer import Layer
from app.summarising.answer_text import UnusableAnswer
from app.summarising.judging.judge import Material, Profile
from app.summarising.prompts import Prompt
from app.summarising.source import Source, read_source

NAME = "words"

# 1. Settings: the section `settings.words` of a chat.


class WordSettings(LayerSettings, PlacementSettings):
    """Word counts."""

    section: ClassVar[str] = NAME

    enabled: bool = Field(False, description="Whether words are counted.")
    every_messages: int = Field(10, ge=1, le=100, description="How many messages are counted together.")


# 2. A table. Its key begins with the chat and the line, so it is copied, forked and erased with them.


class OwnTable(Table):
    """Outside of the service's own metadata, because its migrations do not create it."""

    __abstract__ = True
    metadata = MetaData(naming_convention=Table.metadata.naming_convention)


class WordCount(MessageRangeColumns, OwnTable):
    """The words of ten messages; `text` is empty until they are counted."""

    __tablename__ = "word_counts"
    __table_args__ = ({"info": {"begins": "first_seq"}},)

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text, server_default="")


class WordTotal(OwnTable):
    """How many runs are counted in all chats of a user or of a tenant. Its key begins with the owner of such rows."""

    __tablename__ = "word_totals"
    __table_args__ = ({"info": {"begins": "0"}},)

    owner_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    runs: Mapped[int]


# 3. Handlers: what the layer does at an event, in the transaction of the event.


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Open a row for every full run of messages, and schedule its count."""
    head, settings = event.head, WordSettings.of(event.head.settings)
    if not settings.enabled:
        return
    runs, last_seq = head.cursors.get(NAME, (0, 0))
    opened = []
    while head.head_seq - last_seq >= settings.every_messages:
        first_seq, last_seq, number = last_seq + 1, last_seq + settings.every_messages, runs
        await db_session.raw.execute(
            "INSERT INTO word_counts (chat_key, line_id, number, first_seq, last_seq, origin, filters)"
            " VALUES ($1, $2, $3, $4, $5, 'model', $6)",
            *head.line,
            number,
            first_seq,
            last_seq,
            orjson.dumps(head.filters.to_json()).decode(),
        )
        opened.append(number)
        runs += 1
        head.cursors[NAME] = [runs, last_seq]
    if opened:
        await _rewrite_hashes(db_session, event, opened)


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Rewrite the hashes of the rows that hold changed messages, and schedule those that went stale."""
    rows = await db_session.raw.fetch(
        "SELECT number FROM word_counts WHERE chat_key = $1 AND line_id = $2"
        " AND EXISTS (SELECT FROM unnest($3::int[]) AS seq WHERE seq BETWEEN first_seq AND last_seq)",
        *event.head.line,
        event.changed_seqs,
    )
    await _rewrite_hashes(db_session, event, [row["number"] for row in rows])


async def on_settings_changed(db_session: DbSession, event: SettingsChanged) -> None:
    """Schedule the rows that went stale while the layer was off."""
    if WordSettings.of(event.head.settings).enabled:
        await schedule_unscheduled(
            db_session, event.head, NAME, WordCount.number, now=event.now, settle_s=event.settle_s
        )


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Drop the rows that reach the end that was cut off."""
    gone = await db_session.raw.fetch(
        "DELETE FROM word_counts WHERE chat_key = $1 AND line_id = $2 AND last_seq >= $3 RETURNING number, first_seq",
        *event.head.line,
        event.from_seq,
    )
    await unschedule(db_session, event.head, NAME, [str(row["number"]) for row in gone])
    if gone:
        event.head.cursors[NAME] = [min(row["number"] for row in gone), min(row["first_seq"] for row in gone) - 1]


async def _rewrite_hashes(
    db_session: DbSession, event: MessagesAppended | MessagesChanged, numbers: Sequence[int]
) -> None:
    rows = await _list_rows(db_session, event.head.line, numbers)
    rehashed = await rehash(db_session, event.head, [_derived(row) for row in rows])
    for one in rehashed:
        await db_session.raw.execute(
            "UPDATE word_counts SET current_hash = $4 WHERE chat_key = $1 AND line_id = $2 AND number = $3",
            *event.head.line,
            one.row.of["number"],
            one.current_hash,
        )
    enabled = WordSettings.of(event.head.settings).enabled
    await reschedule(db_session, event.head, NAME, rehashed, enabled=enabled, now=event.now, settle_s=event.settle_s)


async def _list_rows(
    db_session: DbSession, line: tuple[UUID, UUID], numbers: Sequence[int]
) -> Sequence[asyncpg.Record]:
    return await db_session.raw.fetch(
        "SELECT *, filters::text AS filters_json FROM word_counts"
        " WHERE chat_key = $1 AND line_id = $2 AND number = ANY($3) ORDER BY number",
        *line,
        list(numbers),
    )


def _derived(row: asyncpg.Record) -> DerivedRow[asyncpg.Record]:
    return DerivedRow(
        of=row,
        key=str(row["number"]),
        first_seq=row["first_seq"],
        last_seq=row["last_seq"],
        filters=Filters.from_json(orjson.loads(row["filters_json"])),
        source_hash=row["source_hash"],
        current_hash=row["current_hash"],
    )


# 4. A job: what makes the work item `<number>` of the layer.

PROMPT = Prompt(
    name=NAME,
    version="words/1",
    system="Count the words that each speaker says. Answer with one line for each: <name>: <number>.",
    user="{{messages}}",
    placeholders=frozenset({"messages"}),
)


@dataclass(frozen=True, slots=True)
class Counted:
    """The words of each speaker, one a line."""

    text: str
    model: str | None


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> Source | None:
    line = claimed.owner.line
    rows = await _list_rows(db_session, line, [int(claimed.key)])
    if not rows:
        return None
    row = _derived(rows[0])
    return await read_source(db_session.raw, line, row.first_seq, row.last_seq, row.filters)


async def _draft(ctx: JobContext, claimed: Claimed, source: Source) -> Counted:
    if ctx.model is not None:
        inquiry = Inquiry.of(ctx.model, ctx.database, claimed)
        with suppress(NoUsableAnswer):
            return await _ask(inquiry, ctx.prompt(PROMPT), [f"{one.name}: {one.text}" for one in source.utterances])
    words = Counter[str]()
    for one in source.utterances:
        words[one.name] += len(one.text.split())
    return Counted("\n".join(f"{name}: {count}" for name, count in sorted(words.items())), None)


async def _ask(inquiry: Inquiry, prompt: PromptTemplate, said: list[str]) -> Counted:
    def build(_budget_tokens: int) -> list[ChatMessage]:
        return prompt.fill(messages="\n".join(said))

    answer = await ask_model(inquiry, build, COUNTS_PROFILE, Material(said), answer_tokens=200, temperature=0.0)
    return Counted(answer.value, answer.model)


def _read_counts(answer: str, _material: Material) -> str:
    lines = [line.strip() for line in answer.splitlines() if line.rpartition(":")[2].strip().isdecimal()]
    if not lines:
        raise UnusableAnswer("the answer counts nothing")
    return "\n".join(lines)


COUNTS_PROFILE = Profile(read=_read_counts, text=lambda counts: counts, person=None)


async def _is_unchanged(db_session: DbSession, made: Made[Source, Counted]) -> bool | None:
    rows = await _list_rows(db_session, made.head.line, [int(made.claimed.key)])
    return rows[0]["current_hash"] == made.source.hash if rows else None


async def _save(db_session: DbSession, made: Made[Source, Counted]) -> None:
    await db_session.raw.execute(
        "UPDATE word_counts SET text = $4, source_hash = $5, origin = $6, model = $7, prompt_version = $8"
        " WHERE chat_key = $1 AND line_id = $2 AND number = $3",
        *made.head.line,
        int(made.claimed.key),
        made.draft.text,
        made.source.hash,
        "model" if made.draft.model else "extractive",
        made.draft.model,
        PROMPT.version if made.draft.model else None,
    )


COUNT_WORDS = Job(read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)

# A job of a user or of a tenant: it has no line, so `kit.work_queue.schedule` schedules it.

TOTAL = NewWork("total")


async def _count_runs(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> int:
    runs: int = await db_session.raw.fetchval(
        "SELECT count(*) FROM word_counts w JOIN chats c USING (chat_key, line_id)"
        " WHERE c.line_status = 'current' AND w.source_hash IS NOT NULL"
        " AND CASE WHEN $2::text IS NULL THEN c.tenant = $1 ELSE c.user_key = $3 END",
        claimed.owner.tenant,
        claimed.owner.user_id,
        claimed.owner.key,
    )
    return runs


async def _take_runs(_ctx: JobContext, _claimed: Claimed, runs: int) -> int:
    return runs


async def _save_total(db_session: DbSession, made: Made[int, int]) -> None:
    await db_session.raw.execute(
        "INSERT INTO word_totals (owner_key, line_id, runs) VALUES ($1, $2, $3)"
        " ON CONFLICT (owner_key, line_id) DO UPDATE SET runs = excluded.runs",
        made.claimed.owner.key,
        made.claimed.owner.line_id,
        made.draft,
    )


async def erase_owner(db_session: DbSession, event: OwnerErased, *, now: datetime) -> None:
    """Schedule the totals that include the runs of a chat that was erased: of its user, and of the tenant."""
    if event.chat_key is None:
        return
    if event.user_id is not None:
        user = Owner.of_user(event.tenant, event.user_id)
        await work_queue.schedule(db_session, user, NAME, [TOTAL], now=now, settle_s=0)
    await work_queue.schedule(db_session, Owner.of_tenant(event.tenant), NAME, [TOTAL], now=now, settle_s=0)


TOTAL_WORDS = Job(prefix=TOTAL.key, read=_count_runs, draft=_take_runs, save=_save_total)

# 5. The context: a subquery of the one statement, and the segment that is made of its result.

COUNTS = """
    SELECT json_agg(json_build_array(w.number, w.text, w.first_seq, w.last_seq) ORDER BY w.number)::text
    FROM word_counts w WHERE w.chat_key = c.chat_key AND w.line_id = c.line_id AND w.source_hash = w.current_hash"""

SEGMENT = SegmentSpec(
    NAME, instruction='"Words" is how much each of you has said.', after="pinned", trimmed_before="diary"
)


def contribute(view: View) -> Contributed:
    """One item for each run of messages that is counted and not stale, while the layer is on."""
    settings = WordSettings.of(view.settings)
    placement = placement_of(settings)
    if placement is None or view.queried is None or not settings.enabled:
        return Contributed()
    rows = orjson.loads(view.queried)
    items = [
        Item(text, count_tokens(text), (f"words:{number}",), group=TrimGroup(number, f"words {number}"))
        for number, text, _, _ in rows
    ]
    edges = [last_seq + 1 for _, _, _, last_seq in rows]
    return Contributed((Contribution(NAME, items, "## Words", placement=placement),), edges=edges)


DOCUMENTS = """
    SELECT 'words:' || w.number, w.text, w.first_seq, w.last_seq, NULL::text, NULL::float8
    FROM word_counts w WHERE w.chat_key = c.chat_key AND w.line_id = c.line_id AND w.source_hash = w.current_hash"""


async def list_coverage(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> Sequence[Coverage]:
    """The runs of messages that hold one of the range."""
    rows = await db_session.raw.fetch(
        "SELECT number, first_seq, last_seq, source_hash IS NOT DISTINCT FROM current_hash AS valid FROM word_counts"
        " WHERE chat_key = $1 AND line_id = $2 AND last_seq >= $3 AND first_seq <= $4 ORDER BY number",
        chat_key,
        line_id,
        first_seq,
        last_seq,
    )
    return [
        Coverage(row["first_seq"], row["last_seq"], NAME, str(row["number"]), "made" if row["valid"] else "pending")
        for row in rows
    ]


async def list_edges(db_session: DbSession, head: Head, from_seq: int) -> Sequence[int]:
    """The seqs after runs of messages that are counted."""
    rows = await db_session.raw.fetch(
        "SELECT last_seq + 1 AS seq FROM word_counts"
        " WHERE chat_key = $1 AND line_id = $2 AND last_seq >= $3 AND source_hash = current_hash",
        *head.line,
        from_seq,
    )
    return [row["seq"] for row in rows]


# 6. A route, and the descriptor that names all of it.

router = APIRouter(prefix="/v1/chats/{chat_id}/words", tags=[NAME])


class WordsOut(BaseModel):
    """The words of a run of messages."""

    number: int = Field(description="The number of the run, from 0.")
    text: str = Field(description="How many words each speaker said, a line each; empty until they are counted.")


class WordList(BaseModel):
    """The words of all runs of a line."""

    items: list[WordsOut] = Field(description="In story order.")


@router.get("", response_model=WordList)
async def list_words(ref: ReadingChat, db_session: Db, line: Line = None) -> dict[str, Any]:
    """The words of each run of messages."""
    chat = await get_line(db_session, ref, line)  # it raises where the caller must not see the chat
    rows = await db_session.raw.fetch(
        "SELECT number, text FROM word_counts WHERE chat_key = $1 AND line_id = $2 ORDER BY number",
        ref.key,
        chat.line_id,
    )
    return {"items": [dict(row) for row in rows]}


LAYER = Layer(
    name=NAME,
    settings=WordSettings,
    cursor=tuple[int, int],
    models=(WordCount, WordTotal),
    jobs=(COUNT_WORDS, TOTAL_WORDS),
    routers=(router,),
    prompts=(PROMPT,),
    on_append=on_append,
    on_change=on_change,
    on_settings_changed=on_settings_changed,
    on_truncate=on_truncate,
    list_coverage=list_coverage,
    edges=NAME,
    adds_edges_late=True,
    list_edges=list_edges,
    segments=(SEGMENT,),
    context_query=COUNTS,
    documents=DOCUMENTS,
    document_kinds=("words",),
    erase_owner=erase_owner,
    contribute=contribute,
)
