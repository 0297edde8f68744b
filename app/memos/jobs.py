"""The job that makes one memo: read, summarise with no transaction open, write in one that checks the source."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import orjson

from app.chats.eligibility import Filters
from app.chats.service import lock_line
from app.kit.due import Claimed, finish
from app.kit.workbench import Workbench
from app.memos import queries
from app.memos.layer import MemoDraft, save_memo
from app.memos.prompts import MEMO
from app.memos.summarisers import MemoRequest, Summariser, choose_summariser
from app.summarising.source import name_speaker, read_source
from app.summarising.transcript import Utterance


@dataclass(frozen=True, slots=True)
class _Source:
    """A batch as it stands now, and its hash."""

    batch: Sequence[Utterance]
    history: Sequence[Utterance]
    hash: bytes
    characters: Sequence[str]
    language: str | None


async def make_memo(bench: Workbench, claimed: Claimed) -> bool:
    """Make the memo that `claimed` asks for; says whether a model answered. Raises ModelError."""
    summariser = choose_summariser(bench.model, bench.prompts.get(MEMO.name, MEMO))
    source = await _read_source(bench, claimed, summariser.history_messages)
    draft = await _draft(summariser, source, claimed.payload.get("instruction")) if source else None
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
        if head is None or source is None or draft is None:
            await finish(db_session, claimed)  # chat or memo are gone
        else:
            await save_memo(db_session, head, claimed, draft, source_hash=source.hash, now=bench.clock())
    return draft is not None and draft.model is not None


async def _draft(summariser: Summariser, source: _Source, instruction: str | None) -> MemoDraft:
    if not source.batch:  # nothing eligible is left: nobody has to be asked
        return MemoDraft((), summariser.origin, None, None)
    return await summariser.summarise(
        MemoRequest(
            batch=source.batch,
            history=source.history,
            characters=source.characters,
            language=source.language,
            instruction=instruction,
        )
    )


async def _read_source(bench: Workbench, claimed: Claimed, history_messages: int) -> _Source | None:
    """The batch behind a claim, or None if chat or memo are gone."""
    line = (claimed.chat_key, claimed.line_id)
    async with bench.database.raw() as connection:
        row = await queries.find_batch(connection, *line, UUID(claimed.key))
        if row is None:
            return None
        filters = Filters.from_json(orjson.loads(row["filters"]))
        source = await read_source(connection, line, row["first_seq"], row["last_seq"], filters)
        if source is None:
            return None
        before: Sequence[asyncpg.Record] = ()
        if history_messages:
            before = await queries.list_before(connection, *line, before_seq=row["first_seq"], limit=history_messages)
    history = [name_speaker(m["seq"], m["role"], m["name"], m["content"], source.names) for m in before]
    batch = source.utterances
    return _Source(batch, [*history, *batch], source.hash, source.names, source.language)
