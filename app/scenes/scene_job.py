"""The job that makes the recap of a scene."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from app.chats.eligibility import Filters
from app.kit.attempts import save_progress
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.llm.client import LanguageModel
from app.kit.refusals import Refusal
from app.kit.tokens import count_tokens
from app.kit.work_queue import Claimed
from app.layers.ask import Inquiry, NoUsableAnswer
from app.layers.derived import keep_refusals
from app.layers.job import Job, Made
from app.scenes import queries
from app.scenes.answers import SceneText, render_recap
from app.scenes.extractive import EXTRACT_VERSION, quote_scene
from app.scenes.folding import reconcile_fold_work, rehash_steps
from app.scenes.generation import ask_for_scene
from app.scenes.parts import MadeParts
from app.scenes.prompts import RECAP, SCENE_RECAP
from app.scenes.schedule import hides, schedule_hide
from app.summarising.source import Source, read_source


@dataclass(frozen=True, slots=True)
class _Draft:
    """A draft of a scene's recap; `text` is None if there is nothing to summarise.

    If the recap quotes the messages because the model's answers were refused, `refusals` are these answers.
    """

    text: SceneText | None
    origin: Literal["model", "extractive"]
    model: str | None = None
    prompt_version: str | None = None
    refusals: Sequence[Refusal] = ()


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> Source | None:
    """Return the messages of the scene, or None if the line or the scene is gone."""
    line = claimed.owner.line
    found = await queries.find_scene(db_session, *line, UUID(claimed.key))
    if found is None:
        return None
    scene = found[0]
    return await read_source(db_session.raw, line, scene.first_seq, scene.last_seq, Filters.from_json(scene.filters))


async def _draft(ctx: JobContext, claimed: Claimed, source: Source) -> _Draft:
    origin: Literal["model", "extractive"] = "extractive" if ctx.model is None else "model"
    if not source.utterances:  # no message is eligible, so no model is called
        return _Draft(None, origin)
    refusals: Sequence[Refusal] = ()
    if ctx.model is not None:
        try:
            return await _ask(ctx, ctx.model, claimed, source)
        except NoUsableAnswer as error:
            refusals = error.refusals
    # In a thread, because long messages would block the event loop.
    text = await asyncio.to_thread(quote_scene, source.utterances, count_tokens=count_tokens)
    return _Draft(text, "extractive", None, EXTRACT_VERSION, refusals)


async def _ask(ctx: JobContext, model: LanguageModel, claimed: Claimed, source: Source) -> _Draft:
    """Return the model's recap; the recaps of a long scene's parts are stored on the work item.

    Raises what `ask_for_scene` raises.
    """
    prompt = ctx.prompt(SCENE_RECAP)
    made_from = f"{prompt.version} {source.hash.hex()}"

    parts = MadeParts.from_json(claimed.progress, made_from, refused=len(claimed.refusals))

    async def keep(made: MadeParts) -> None:
        async with ctx.database.unit_of_work() as db_session:
            await save_progress(db_session, claimed, made.to_json())

    if claimed.progress and claimed.progress["source"] != made_from:
        # The answers refused so far are about another source. Their number is stored, so that no attempt counts them.
        await keep(parts)
    text, model_name, version = await ask_for_scene(
        Inquiry.of(model, ctx.database, claimed),
        prompt,
        ctx.prompt(RECAP),
        source,
        instruction=claimed.payload.get("instruction"),
        parts=parts,
        keep=keep,
    )
    return _Draft(text, "model", model_name, version)


async def _is_unchanged(db_session: DbSession, made: Made[Source, _Draft]) -> bool | None:
    found = await queries.find_scene(db_session, *made.head.line, UUID(made.claimed.key))
    return None if found is None else found[0].current_hash == made.source.hash


async def _save(db_session: DbSession, made: Made[Source, _Draft]) -> None:
    head, draft, now = made.head, made.draft, made.now
    found = await queries.find_scene(db_session, *head.line, UUID(made.claimed.key))
    if found is None:
        raise LookupError(f"the scene {made.claimed.key} is gone")
    scene = found[0]
    for name, value in _values(draft).items():
        setattr(scene, name, value)
    if not scene.titled:
        scene.title = draft.text.title if draft.text else None
    scene.source_hash, scene.attempts, scene.edited, scene.generated_at = (
        made.source.hash,
        made.claimed.attempts,
        False,
        now,
    )
    await rehash_steps(db_session, head, scene.first_seq, scene.last_seq)
    await reconcile_fold_work(db_session, head, now=now)
    if hides(head):  # a fold also schedules auto-hide, but no fold follows if a person's version covers the scene
        await schedule_hide(db_session, head, now=now)


def _values(draft: _Draft) -> dict[str, Any]:
    recap = render_recap(draft.text) if draft.text else ""
    return {
        "status": "ready" if draft.text else "empty",
        "origin": draft.origin,
        "recap": recap,
        "tokens": count_tokens(recap),
        "model": draft.model,
        "prompt_version": draft.prompt_version,
        "refusals": keep_refusals(draft.refusals),
    }


MAKE_SCENE_RECAP = Job(read=_read, draft=_draft, is_unchanged=_is_unchanged, save=_save)
