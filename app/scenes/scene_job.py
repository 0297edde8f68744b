"""The job that makes one scene's recap: read, ask with no transaction open, write in one that checks the source."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from app.chats.eligibility import Filters
from app.chats.service import Head, lock_line
from app.kit.db import DbSession, defer
from app.kit.due import Claimed, finish, holds_lease, record_failure
from app.kit.tokens import count_tokens
from app.kit.workbench import Workbench
from app.scenes import queries
from app.scenes.answers import SceneText, render_recap
from app.scenes.asking import ask_for_scene
from app.scenes.folding import judge_fold, rehash_steps
from app.scenes.models import Scene
from app.scenes.quotes import EXTRACT_VERSION, quote_scene
from app.scenes.work import hides, make_hide_due
from app.summarising.source import Source, read_source


@dataclass(frozen=True, slots=True)
class _Draft:
    """What was made of a scene; no text is an empty one."""

    text: SceneText | None
    origin: Literal["model", "extractive"]
    model: str | None = None
    prompt_version: str | None = None


async def make_scene_recap(bench: Workbench, claimed: Claimed) -> bool:
    """Make the recap that `claimed` asks for; says whether a model answered. Raises ModelError."""
    source = await _read(bench, claimed)
    draft = await _draft(bench, source, claimed.payload.get("instruction")) if source else None
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
        found = await queries.find_scene(db_session, claimed.chat_key, claimed.line_id, UUID(claimed.key))
        if head is None or source is None or draft is None or found is None:
            await finish(db_session, claimed)  # the chat is gone, or the scene is none any more
        elif await holds_lease(db_session, claimed):
            await _save(bench, db_session, head, claimed, found[0], source.hash, draft)
    return draft is not None and draft.model is not None


async def _read(bench: Workbench, claimed: Claimed) -> Source | None:
    """The messages of the scene; None if chat or scene are gone."""
    line = (claimed.chat_key, claimed.line_id)
    async with bench.database.unit_of_work() as db_session:
        found = await queries.find_scene(db_session, *line, UUID(claimed.key))
        if found is None:
            return None
        scene = found[0]
        return await read_source(
            db_session.raw, line, scene.first_seq, scene.last_seq, Filters.from_json(scene.filters)
        )


async def _draft(bench: Workbench, source: Source, instruction: str | None) -> _Draft:
    origin: Literal["model", "extractive"] = "extractive" if bench.model is None else "model"
    if not source.utterances:  # nothing eligible is in it: nobody has to be asked
        return _Draft(None, origin)
    if bench.model is None:
        # In a thread, because long messages take longer than a loop may wait.
        text = await asyncio.to_thread(quote_scene, source.utterances, count_tokens=count_tokens)
        return _Draft(text, origin, None, EXTRACT_VERSION)
    told, model, version = await ask_for_scene(bench.model, bench.prompts, source, instruction=instruction)
    return _Draft(told, origin, model, version)


async def _save(
    bench: Workbench,
    db_session: DbSession,
    head: Head,
    claimed: Claimed,
    scene: Scene,
    source_hash: bytes,
    draft: _Draft,
) -> None:
    """Write what was made, if the scene still says what it was made from."""
    now = bench.clock()
    if scene.current_hash != source_hash:
        error = "its messages changed while it was being made"
        await record_failure(db_session, claimed, error=error, transient=False, now=now)
        defer(db_session, "layer_settled", head)  # it may be the last try
        return
    for name, value in _values(draft).items():
        setattr(scene, name, value)
    if not scene.titled:
        scene.title = draft.text.title if draft.text else None
    scene.source_hash, scene.attempts, scene.edited, scene.made_at = source_hash, claimed.attempts, False, now
    await finish(db_session, claimed)
    await rehash_steps(db_session, head, scene.first_seq, scene.last_seq)
    await judge_fold(db_session, head, now=now)
    if hides(head):  # a person's recap may tell of it already, so that no fold follows
        await make_hide_due(db_session, head, now=now)
    defer(db_session, "layer_settled", head)


def _values(draft: _Draft) -> dict[str, Any]:
    recap = render_recap(draft.text) if draft.text else ""
    return {
        "status": "ready" if draft.text else "empty",
        "origin": draft.origin,
        "recap": recap,
        "tokens": count_tokens(recap),
        "model": draft.model,
        "prompt_version": draft.prompt_version,
    }
