"""The job that looks for a break in the open scene: with a model by what is told, without one by a pause in time.

One look finds one break. Where enough messages are left behind it, or have come meanwhile, another look is due.
"""

from dataclasses import dataclass

from app.chats.service import Head, is_eligible, list_living, lock_line, read_head
from app.kit.db import DbSession, defer
from app.kit.due import Claimed, finish, holds_lease, record_failure
from app.kit.workbench import Workbench
from app.scenes import change_queries, queries
from app.scenes.asking import ask_for_break
from app.scenes.breaks import find_candidates, find_pause
from app.scenes.closing import By, close_at
from app.scenes.counting import count_eligible
from app.scenes.work import DETECT, make_due_once
from app.summarising.source import Source, read_source


@dataclass(frozen=True, slots=True)
class _Look:
    """The open scene as it was read.

    Attributes:
        first_seq: Where it begins.
        head_seq: The newest seq that there was.
        source: Its newest eligible messages.
        candidates: Those of them on which it may end.
        offset: The newest so many of them only give context.

    """

    first_seq: int
    head_seq: int
    source: Source
    candidates: list[int]
    offset: int


@dataclass(frozen=True, slots=True)
class _Found:
    """Where the scene ends, who says so, and why."""

    last_seq: int
    by: By
    reason: str


async def detect_break(bench: Workbench, claimed: Claimed) -> bool:
    """Look for a break in the open scene; says whether a model answered. Raises ModelError."""
    look = await _read_look(bench, claimed)
    found = await _find_break(bench, look) if look else None
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
        if head is None or look is None:
            await finish(db_session, claimed)
        elif await holds_lease(db_session, claimed):
            await _save(bench, db_session, head, claimed, look, found)
    return look is not None and bench.model is not None


async def _read_look(bench: Workbench, claimed: Claimed) -> _Look | None:
    """What there is to look at; None if the chat is gone, nobody wants it any more, or nothing may be a break."""
    async with bench.database.unit_of_work() as db_session:
        head = await read_head(db_session, claimed.chat_key, claimed.line_id)
        if head is None or not _is_wanted(head, claimed):
            return None
        scenes = head.settings.scenes
        first_seq = await queries.find_last_break(db_session, head) + 1
        read_seq = await change_queries.find_newest_from(db_session, head, first_seq, scenes.max_messages)
        if read_seq is None:
            return None
        before = await count_eligible(db_session, head, first_seq, read_seq - 1, enough=scenes.min_messages)
        line = head.line
        source = await read_source(db_session.raw, line, read_seq, head.head_seq, head.filters)
        if source is None:
            return None
        lifted = await change_queries.list_lifted_between(db_session, head, read_seq, head.head_seq)
    candidates = find_candidates(
        [said.seq for said in source.utterances],
        before=before,
        min_messages=scenes.min_messages,
        offset=scenes.offset,
        lifted=lifted,
    )
    return _Look(first_seq, head.head_seq, source, candidates, scenes.offset) if candidates else None


async def _find_break(bench: Workbench, look: _Look) -> _Found | None:
    if bench.model is not None:
        last_seq, reason = await ask_for_break(
            bench.model, bench.prompts, look.source, candidates=look.candidates, offset=look.offset
        )
        return None if last_seq is None else _Found(last_seq, "model", reason)
    seqs = [said.seq for said in look.source.utterances]
    pause = find_pause(seqs, look.source.sent_at, look.candidates, look.offset)
    if pause is None:
        return None
    return _Found(pause[0], "time", f"no model: {pause[1].total_seconds() / 3600:.0f} h passed here")


async def _save(
    bench: Workbench, db_session: DbSession, head: Head, claimed: Claimed, look: _Look, found: _Found | None
) -> None:
    """Set the break, if the open scene still begins where it did and the message may still be its last."""
    now = bench.clock()
    if await queries.find_last_break(db_session, head) + 1 != look.first_seq or (
        found and not await _may_end(db_session, head, found.last_seq)
    ):
        error = "the scene changed while it was looked at"
        await record_failure(db_session, claimed, error=error, transient=False, now=now)
        return
    await finish(db_session, claimed)
    if found and _is_wanted(head, claimed):
        await close_at(db_session, head, found.last_seq, by=found.by, reason=found.reason or None, now=now, settle_s=0)
        defer(db_session, "layer_settled", head)
    if found or head.head_seq > look.head_seq:
        await _look_again(bench, db_session, head)


async def _may_end(db_session: DbSession, head: Head, seq: int) -> bool:
    """Whether a scene may still end on a message: it is there, and nobody has lifted a break from it meanwhile."""
    messages = await list_living(db_session, *head.line, [(seq, seq)])
    if not messages or not is_eligible(messages[0], head.filters):
        return False
    return not await change_queries.list_lifted_between(db_session, head, seq, seq)


async def _look_again(bench: Workbench, db_session: DbSession, head: Head) -> None:
    """Make another look due if there is enough to look at."""
    scenes = head.settings.scenes
    if scenes.enabled and scenes.detect:
        first_seq = await queries.find_last_break(db_session, head) + 1
        enough = scenes.min_messages + scenes.offset
        if await count_eligible(db_session, head, first_seq, head.head_seq, enough=enough) >= enough:
            await make_due_once(db_session, head, DETECT, at_seq=first_seq, now=bench.clock(), settle_s=0)


def _is_wanted(head: Head, claimed: Claimed) -> bool:
    """Whether it is still to be looked for a break: a person has asked, or the settings say so."""
    scenes = head.settings.scenes
    return bool(claimed.payload.get("asked")) or (scenes.enabled and scenes.detect)
