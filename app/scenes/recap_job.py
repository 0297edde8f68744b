"""The job that folds scenes into the running recap."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.chats.head import Head
from app.chats.heads import read_head
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.llm.client import ModelError
from app.kit.refusals import Refusal
from app.kit.tokens import count_tokens
from app.kit.work_queue import Claimed
from app.layers.ask import Inquiry, NoUsableAnswer
from app.layers.job import Job, Made
from app.narratives import service as narratives
from app.narratives.service import FoldDraft
from app.scenes import prompts, queries
from app.scenes.answers import find_state_scene, has_state, head_state
from app.scenes.extractive import EXTRACT_VERSION, fold_quotes
from app.scenes.folding import RECAP, Fold, find_fold, read_recap_state, reconcile_fold_work
from app.scenes.generation import ask_for_recap
from app.scenes.prompts import SceneRecap
from app.scenes.recap_fold import hash_step
from app.scenes.schedule import FOLD, hides, schedule_hide
from app.scenes.settings import SceneSettings


@dataclass(frozen=True, slots=True)
class _Source:
    """The input of a fold.

    Attributes:
        fold: The scenes, and the version they are folded into.
        former: The text of that version; empty if there is none.
        scene_recaps: The recaps of those scenes that have one, in order.
        user_name: The user's name, if the chat has it.
        language: The chat's language as a BCP 47 tag, if it is known.
        state_scene: The title of the scene to which the state in the new recap belongs, or its number if it has no
            title. This scene is the newest of the folded scenes that have a state. If none of them has a state, it is
            the scene that the former recap names for its state; None if the former recap names no scene.

    """

    fold: Fold
    former: str
    scene_recaps: Sequence[SceneRecap]
    user_name: str | None
    language: str | None
    state_scene: str | None


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> _Source | None:
    """Return the next fold, or None if the line is gone or nothing is left to fold.

    Raises ModelError, so that the job is retried, while a rebuild has to wait for the recap of the first scene.
    """
    head = await read_head(db_session, *claimed.owner.line)
    if head is None:
        return None
    fold = await _find_fold(db_session, head, claimed)
    if fold is None:
        if await _has_to_wait(db_session, head, claimed):
            raise ModelError("the recap of the first scene is still being made", transient=True)
        return None
    former = ""
    if fold.base:
        former = await narratives.find_text(db_session.raw, head.line, RECAP, fold.base.version) or ""
    made = [scene.scene_id for scene in fold.scenes if scene.state == "made"]
    rows = await queries.list_recaps(db_session, head, made)
    with_state = [title or str(number) for number, title, recap in rows if has_state(recap)]
    return _Source(
        fold,
        former,
        [SceneRecap(title, recap) for _, title, recap in rows],
        *await queries.find_user_name_and_language(db_session, head),
        with_state[-1] if with_state else find_state_scene(former),
    )


async def _find_fold(db_session: DbSession, head: Head, claimed: Claimed) -> Fold | None:
    if not SceneSettings.of(head.settings).enabled:  # switched off since the fold was scheduled
        return None
    return await find_fold(db_session, head, from_nothing=bool(claimed.payload.get("rebuild")))


async def _has_to_wait(db_session: DbSession, head: Head, claimed: Claimed) -> bool:
    """Return whether a rebuild that found nothing to fold has to wait: the first closed scene has no recap yet."""
    if not claimed.payload.get("rebuild") or not SceneSettings.of(head.settings).enabled:
        return False
    limit_seq = (await read_recap_state(db_session, head)).limit_seq
    return bool(await queries.list_closed_between(db_session, head, 1, limit_seq, limit=1))


async def _draft(ctx: JobContext, claimed: Claimed, source: _Source) -> FoldDraft:
    if not source.scene_recaps:  # all of the scenes are empty or have failed: the recap stays as it is
        return FoldDraft(source.former, "extractive" if ctx.model is None else "model")
    draft = await _fold(ctx, claimed, source)
    return replace(draft, text=head_state(draft.text, source.state_scene))


async def _fold(ctx: JobContext, claimed: Claimed, source: _Source) -> FoldDraft:
    """Return the running recap with the scenes folded in, by the model or from quotations."""
    refusals: Sequence[Refusal] = ()
    if ctx.model is not None:
        inquiry, prompt = Inquiry.of(ctx.model, ctx.database, claimed), ctx.prompt(prompts.RECAP)
        try:
            return await ask_for_recap(
                inquiry,
                prompt,
                source.former,
                source.scene_recaps,
                user_name=source.user_name,
                language=source.language,
            )
        except NoUsableAnswer as error:
            refusals = error.refusals
    recaps = [scene.recap for scene in source.scene_recaps]
    text = await asyncio.to_thread(fold_quotes, source.former, recaps, count_tokens=count_tokens)
    return FoldDraft(text, "extractive", None, EXTRACT_VERSION, refusals=refusals)


async def _is_unchanged(db_session: DbSession, made: Made[_Source, FoldDraft]) -> bool:
    """Return whether the next fold still begins with the same scenes and builds on the same version."""
    fold = made.source.fold
    again = await _find_fold(db_session, made.head, made.claimed)
    return again is not None and again.base == fold.base and again.scenes[: len(fold.scenes)] == fold.scenes


async def _save(db_session: DbSession, made: Made[_Source, FoldDraft]) -> None:
    head, fold, now = made.head, made.source.fold, made.now
    first_unit = fold.base.last_unit + 1 if fold.base else 1
    await narratives.save_fold(
        db_session,
        head.line,
        RECAP,
        made.draft,
        base=fold.base,
        first_unit=first_unit,
        last_unit=fold.scenes[-1].last_seq,
        begins_seq=first_unit,
        source_hash=hash_step(fold.scenes),
        filters=None,
        now=now,
    )
    await reconcile_fold_work(db_session, head, now=now, settle_s=0)
    if hides(head):
        await schedule_hide(db_session, head, now=now)


FOLD_RECAP = Job(prefix=FOLD, read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
