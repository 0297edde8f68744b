"""The job that makes one memo: read, summarise with no transaction open, write in one that checks the source."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from app.chats.eligibility import Filters
from app.chats.service import lock_line, range_hash
from app.kit.due import Claimed, finish
from app.kit.workbench import Workbench
from app.memos import queries
from app.memos.batches import eligible_members
from app.memos.layer import MemoDraft, save_memo
from app.memos.summarisers import MemoRequest, Summariser, choose_summariser
from app.summarising.transcript import Utterance


@dataclass(frozen=True, slots=True)
class _Source:
    """A batch as it stands now, and its hash."""

    batch: Sequence[Utterance]
    history: Sequence[Utterance]
    hash: bytes
    characters: Sequence[str]
    language: str | None


@dataclass(frozen=True, slots=True)
class _Member:
    """A row of the batch, read as JSON; what eligibility asks of it."""

    seq: int
    role: str
    name: str | None
    kind: str | None
    content: str
    tokens: int
    blank: bool
    excluded: bool
    hidden_by: str | None
    deleted: bool
    digest: bytes


async def make_memo(bench: Workbench, claimed: Claimed) -> bool:
    """Make the memo that `claimed` asks for; says whether a model answered. Raises ModelError."""
    summariser = choose_summariser(bench.model)
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
    async with bench.database.raw() as connection:
        row = await queries.find_source(connection, claimed.chat_key, claimed.line_id, UUID(claimed.key))
        if row is None:
            return None
        before = (
            await queries.list_before(
                connection,
                claimed.chat_key,
                claimed.line_id,
                before_seq=row["first_seq"],
                limit=history_messages,
            )
            if history_messages
            else []
        )
    characters = [character["name"] for character in orjson.loads(row["characters"])]
    filters = Filters.from_json(orjson.loads(row["filters"]))
    members = [_member(message) for message in orjson.loads(row["messages"] or "[]")]
    eligible = eligible_members(members, filters)
    seqs = {seq for seq, _ in eligible}
    batch = [_utterance(m.seq, m.role, m.name, m.content, characters) for m in members if m.seq in seqs]
    history = [_utterance(m["seq"], m["role"], m["name"], m["content"], characters) for m in before]
    return _Source(batch, [*history, *batch], range_hash(eligible), characters, row["language"])


def _member(message: dict[str, Any]) -> _Member:
    return _Member(**{**message, "digest": bytes.fromhex(message["digest"])})


def _utterance(seq: int, role: str, name: str | None, text: str, characters: Sequence[str]) -> Utterance:
    """A message with a name for its speaker: its own, else the only character's, else the role's."""
    alone = characters[0] if len(characters) == 1 else "Character"
    roles = {"user": "User", "assistant": alone, "narrator": "Narrator", "system": "System"}
    return Utterance(seq, role, name or roles[role], text)
