"""The job that searches the open scene for a break: a model decides by content; without one, a pause in time decides.

If the model's answers cannot be used, a pause decides, too. A message is *judged* once a search has decided whether the
scene ends on it. One search reads the oldest messages that are not judged yet, and finds at most one break. If enough
messages are left after the break, or have arrived meanwhile, another search is scheduled.
"""

from collections.abc import Mapping
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
from app.messages.reads import list_not_deleted, list_range
from app.scenes import change_queries, queries
from app.scenes.detection.breaks import NO_MODEL, NO_USABLE_ANSWER, find_pause
from app.scenes.detection.looks import Look, choose_context, plan_look
from app.scenes.generation import ask_for_break
from app.scenes.lifecycle import By, close_at
from app.scenes.open_scene import OpenScene
from app.scenes.prompts import SCENE_BREAK
from app.scenes.schedule import (
    DETECT,
    NAME,
    count_eligible,
    count_open_scene,
    is_search_due,
    list_eligible,
    schedule_once,
)
from app.scenes.settings import SceneSettings
from app.summarising.source import Source, read_source

_CONTEXT_SEQS = 64
"""The context is taken from this many seqs before the first message that is not judged."""


@dataclass(frozen=True, slots=True)
class _Sought:
    """The part of the open scene that a search reads.

    Attributes:
        first_seq: Where the open scene begins.
        look: Which messages are read, and on which of them the scene may end.
        source: The messages.
        digests: The digest of each message that the search judges, by its seq.

    """

    first_seq: int
    look: Look
    source: Source
    digests: Mapping[int, bytes]


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


async def _read(ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Sought | None:
    """Return what is to be read, or None if the line is gone, no search is wanted, or no message can be judged."""
    head = await read_head(db_session, *claimed.owner.line)
    if head is None or not _is_wanted(head, claimed):
        return None
    scenes = SceneSettings.of(head.settings)
    # Without a model, the pause after a message decides, so another message has to follow it.
    offset = scenes.offset if ctx.model is not None else max(scenes.offset, 1)
    first_seq = await queries.find_last_break(db_session, head) + 1
    from_seq = OpenScene.from_json(head.cursors.get(NAME)).begun_at(first_seq).unjudged_from
    unjudged = await list_eligible(db_session, head, from_seq, scenes.max_messages + offset)
    look = plan_look(
        await _list_context(db_session, head, first_seq, from_seq - 1),
        [message.seq for message in unjudged],
        before=await count_eligible(db_session, head, first_seq, from_seq - 1, enough=scenes.min_messages),
        min_messages=scenes.min_messages,
        max_messages=scenes.max_messages,
        offset=offset,
        lifted=await change_queries.list_lifted_between(db_session, head, from_seq, head.head_seq),
    )
    if look is None:
        return None
    source = await read_source(db_session.raw, head.line, look.read[0], look.read[-1], head.filters)
    digests = {message.seq: message.digest for message in unjudged[: len(look.judged)]}
    return None if source is None else _Sought(first_seq, look, source, digests)


async def _list_context(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> list[int]:
    """Return the judged messages of the open scene that are context; `last_seq` is the last seq that is judged."""
    from_seq = max(first_seq, last_seq - _CONTEXT_SEQS + 1)
    messages = await list_range(db_session, *head.line, from_seq, last_seq)
    return choose_context([(message.seq, message.tokens) for message in messages if is_eligible(message, head.filters)])


async def _draft(ctx: JobContext, claimed: Claimed, sought: _Sought) -> _Looked:
    return _Looked(await _find_break(ctx, claimed, sought) if sought.look.candidates else None)


async def _find_break(ctx: JobContext, claimed: Claimed, sought: _Sought) -> _Found | None:
    look, source = sought.look, sought.source
    if ctx.model is not None:
        inquiry, prompt = Inquiry.of(ctx.model, ctx.database, claimed), ctx.prompt(SCENE_BREAK)
        with suppress(NoUsableAnswer):
            last_seq, reason = await ask_for_break(
                inquiry, prompt, source, candidates=look.candidates, context={*look.context, *look.after}
            )
            return None if last_seq is None else _Found(last_seq, "model", reason)
    pause = find_pause([said.seq for said in source.utterances], source.sent_at, look.candidates)
    if pause is None:
        return None
    why = NO_MODEL if ctx.model is None else NO_USABLE_ANSWER
    return _Found(pause[0], "time", f"{why}: {pause[1].total_seconds() / 3600:.0f} h passed here")


async def _is_unchanged(db_session: DbSession, made: Made[_Sought, _Looked]) -> bool:
    """Return whether the result of the search still applies.

    The open scene must begin where it did, and the messages that the search judges must be as they were read. If a
    break was found, only the messages up to it count. A person must not have removed a break at the same message
    meanwhile.
    """
    head, sought, found = made.head, made.source, made.draft.found
    if await queries.find_last_break(db_session, head) + 1 != sought.first_seq:
        return False
    until_seq = found.last_seq if found else sought.look.judged[-1]
    messages = await list_not_deleted(db_session, *head.line, [(sought.look.judged[0], until_seq)])
    current = {message.seq: message.digest for message in messages if is_eligible(message, head.filters)}
    if current != {seq: digest for seq, digest in sought.digests.items() if seq <= until_seq}:
        return False
    return found is None or not await change_queries.list_lifted_between(db_session, head, until_seq, until_seq)


async def _save(db_session: DbSession, made: Made[_Sought, _Looked]) -> None:
    """Set the break that was found, record what is judged, and schedule another search if one is due."""
    head, found, now = made.head, made.draft.found, made.now
    if not _is_wanted(head, made.claimed):
        return
    if found:
        await close_at(db_session, head, found.last_seq, by=found.by, reason=found.reason or None, now=now, settle_s=0)
    opened = OpenScene.from_json(head.cursors.get(NAME)).begun_at(made.source.first_seq)
    if found:
        opened = opened.begun_at(found.last_seq + 1)
    opened = opened.judged_through(found.last_seq if found else made.source.look.judged[-1])
    await _look_again(db_session, head, opened, now)


async def _look_again(db_session: DbSession, head: Head, opened: OpenScene, now: datetime) -> None:
    """Schedule another search if detection is on and enough messages of the open scene are not judged."""
    scenes = SceneSettings.of(head.settings)
    if scenes.enabled and scenes.detect:
        opened = await count_open_scene(db_session, head, opened)
        if is_search_due(head, opened):
            await schedule_once(db_session, head, DETECT, at_seq=opened.unjudged_from, now=now, settle_s=0)
    head.cursors[NAME] = opened.to_json()


def _is_wanted(head: Head, claimed: Claimed) -> bool:
    """Return whether a search is wanted: a person asked for it, or detection is on."""
    scenes = SceneSettings.of(head.settings)
    return bool(claimed.payload.get("asked")) or (scenes.enabled and scenes.detect)


DETECT_BREAK = Job(prefix=DETECT, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
