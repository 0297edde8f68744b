"""The job that searches the open scene for a break: a model decides by content; without one, a pause in time decides.

One search finds at most one break. If enough messages are left after it, or have arrived meanwhile, another search is
scheduled.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from app.chats.eligibility import is_eligible
from app.chats.head import Head
from app.chats.heads import read_head
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.ask import Inquiry, NoUsableAnswer
from app.layers.job import Job, Made
from app.messages.reads import list_not_deleted
from app.scenes import change_queries, queries
from app.scenes.breaks import find_candidates, find_pause
from app.scenes.generation import ask_for_break
from app.scenes.lifecycle import By, close_at
from app.scenes.prompts import SCENE_BREAK
from app.scenes.schedule import DETECT, count_eligible, schedule_once
from app.scenes.settings import SceneSettings
from app.summarising.source import Source, read_source


@dataclass(frozen=True, slots=True)
class _Look:
    """The open scene as it was read.

    Attributes:
        first_seq: Where it begins.
        head_seq: The newest seq of the line at that time.
        source: Its newest eligible messages.
        candidates: Those of them on which it may end.
        offset: How many of the newest ones only give context.

    """

    first_seq: int
    head_seq: int
    source: Source
    candidates: list[int]
    offset: int


@dataclass(frozen=True, slots=True)
class _Found:
    """A break: on which message, who set it, and why."""

    last_seq: int
    by: By
    reason: str


@dataclass(frozen=True, slots=True)
class _Looked:
    """The result of a search; `found` is None if the scene goes on."""

    found: _Found | None


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Look | None:
    """Return the open scene, or None if the line is gone, no search is wanted, or the scene can end on no message."""
    head = await read_head(db_session, *claimed.owner.line)
    if head is None or not _is_wanted(head, claimed):
        return None
    scenes = SceneSettings.of(head.settings)
    first_seq = await queries.find_last_break(db_session, head) + 1
    read_seq = await change_queries.find_newest_from(db_session, head, first_seq, scenes.max_messages)
    if read_seq is None:
        return None
    before = await count_eligible(db_session, head, first_seq, read_seq - 1, enough=scenes.min_messages)
    source = await read_source(db_session.raw, head.line, read_seq, head.head_seq, head.filters)
    if source is None:
        return None
    candidates = find_candidates(
        [said.seq for said in source.utterances],
        before=before,
        min_messages=scenes.min_messages,
        offset=scenes.offset,
        lifted=await change_queries.list_lifted_between(db_session, head, read_seq, head.head_seq),
    )
    return _Look(first_seq, head.head_seq, source, candidates, scenes.offset) if candidates else None


async def _draft(ctx: JobContext, claimed: Claimed, look: _Look) -> _Looked:
    return _Looked(await _find_break(ctx, claimed, look))


async def _find_break(ctx: JobContext, claimed: Claimed, look: _Look) -> _Found | None:
    if ctx.model is not None:
        inquiry, prompt = Inquiry.of(ctx.model, ctx.database, claimed), ctx.prompt(SCENE_BREAK)
        with suppress(NoUsableAnswer):
            last_seq, reason = await ask_for_break(
                inquiry, prompt, look.source, candidates=look.candidates, offset=look.offset
            )
            return None if last_seq is None else _Found(last_seq, "model", reason)
    seqs = [said.seq for said in look.source.utterances]
    pause = find_pause(seqs, look.source.sent_at, look.candidates, look.offset)
    if pause is None:
        return None
    why = "no model" if ctx.model is None else "no usable answer"
    return _Found(pause[0], "time", f"{why}: {pause[1].total_seconds() / 3600:.0f} h passed here")


async def _is_unchanged(db_session: DbSession, made: Made[_Look, _Looked]) -> bool:
    """Return whether the open scene still begins where it did and may still end on the message that was found."""
    if await queries.find_last_break(db_session, made.head) + 1 != made.source.first_seq:
        return False
    found = made.draft.found
    return found is None or await _may_end(db_session, made.head, found.last_seq)


async def _save(db_session: DbSession, made: Made[_Look, _Looked]) -> None:
    """Set the break that was found, and schedule another search if there is more to search."""
    head, found, now = made.head, made.draft.found, made.now
    if found and _is_wanted(head, made.claimed):
        await close_at(db_session, head, found.last_seq, by=found.by, reason=found.reason or None, now=now, settle_s=0)
    if found or head.head_seq > made.source.head_seq:
        await _look_again(db_session, head, now)


async def _may_end(db_session: DbSession, head: Head, seq: int) -> bool:
    """Return whether a scene may still end on a message: it is eligible, and no break was removed from it."""
    messages = await list_not_deleted(db_session, *head.line, [(seq, seq)])
    if not messages or not is_eligible(messages[0], head.filters):
        return False
    return not await change_queries.list_lifted_between(db_session, head, seq, seq)


async def _look_again(db_session: DbSession, head: Head, now: datetime) -> None:
    """Schedule another search if detection is on and the open scene is long enough."""
    scenes = SceneSettings.of(head.settings)
    if scenes.enabled and scenes.detect:
        first_seq = await queries.find_last_break(db_session, head) + 1
        enough = scenes.min_messages + scenes.offset
        if await count_eligible(db_session, head, first_seq, head.head_seq, enough=enough) >= enough:
            await schedule_once(db_session, head, DETECT, at_seq=first_seq, now=now, settle_s=0)


def _is_wanted(head: Head, claimed: Claimed) -> bool:
    """Return whether a search is wanted: a person asked for it, or detection is on."""
    scenes = SceneSettings.of(head.settings)
    return bool(claimed.payload.get("asked")) or (scenes.enabled and scenes.detect)


DETECT_BREAK = Job(prefix=DETECT, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
