"""The job that folds scenes into the running recap: read, ask with no transaction open, write if nothing changed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from app.chats.service import Head, lock_line, read_head
from app.kit.db import DbSession, defer
from app.kit.due import Claimed, finish, holds_lease, record_failure
from app.kit.tokens import count_tokens
from app.kit.workbench import Workbench
from app.narratives import service as narratives
from app.narratives.service import FoldDraft
from app.scenes import queries
from app.scenes.asking import ask_for_recap
from app.scenes.folding import RECAP, Fold, find_fold, judge_fold, read_standing
from app.scenes.quotes import EXTRACT_VERSION, fold_quotes
from app.scenes.recap_prompt import ToldScene
from app.scenes.running import hash_step
from app.scenes.work import hides, make_hide_due


@dataclass(frozen=True, slots=True)
class _Source:
    """What is folded, and what into.

    Attributes:
        fold: Which scenes.
        former: The text of the version they are folded into; empty for none.
        told: The recaps of those scenes that have one, in order.
        language: BCP 47, if the chat says so.

    """

    fold: Fold
    former: str
    told: Sequence[ToldScene]
    language: str | None


async def fold_recap(bench: Workbench, claimed: Claimed) -> bool:
    """Fold what is next into the running recap; says whether a model answered. Raises ModelError."""
    source = await _read_source(bench, claimed)
    draft = await _draft(bench, source) if source else None
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
        if head is not None and source is None and await _has_to_wait(db_session, head, claimed):
            error = "the first scene is still being told"
            await record_failure(db_session, claimed, error=error, transient=True, now=bench.clock())
        elif head is None or source is None or draft is None:
            await finish(db_session, claimed)  # the chat is gone, or nothing is left to fold
        elif await holds_lease(db_session, claimed):
            await _save(bench, db_session, head, claimed, source.fold, draft)
    return draft is not None and draft.model is not None


async def _read_source(bench: Workbench, claimed: Claimed) -> _Source | None:
    async with bench.database.unit_of_work() as db_session:
        head = await read_head(db_session, claimed.chat_key, claimed.line_id)
        fold = await _find_fold(db_session, head, claimed) if head else None
        if head is None or fold is None:
            return None
        former = ""
        if fold.base:
            former = await narratives.find_text(db_session.raw, head.line, RECAP, fold.base.version) or ""
        made = [scene.scene_id for scene in fold.scenes if scene.state == "made"]
        told = [ToldScene(title, recap) for title, recap in await queries.list_recaps(db_session, head, made)]
        language = await queries.find_language(db_session, head)
    return _Source(fold, former, told, language)


async def _find_fold(db_session: DbSession, head: Head, claimed: Claimed) -> Fold | None:
    if not head.settings.scenes.enabled:  # switched off since a person asked for it
        return None
    return await find_fold(db_session, head, from_nothing=bool(claimed.payload.get("rebuild")))


async def _has_to_wait(db_session: DbSession, head: Head, claimed: Claimed) -> bool:
    """Whether a rebuild that had nothing to begin with is to be tried again: there are scenes, and a person asked."""
    if not claimed.payload.get("rebuild") or not head.settings.scenes.enabled:
        return False
    limit_seq = (await read_standing(db_session, head)).limit_seq
    return bool(await queries.list_closed_between(db_session, head, 1, limit_seq, limit=1))


async def _draft(bench: Workbench, source: _Source) -> FoldDraft:
    if not source.told:  # nothing happened in them, or nobody could say what: the recap stays as it is
        return FoldDraft(source.former, "extractive" if bench.model is None else "model")
    if bench.model is None:
        recaps = [scene.recap for scene in source.told]
        text = await asyncio.to_thread(fold_quotes, source.former, recaps, count_tokens=count_tokens)
        return FoldDraft(text, "extractive", None, EXTRACT_VERSION)
    return await ask_for_recap(bench.model, bench.prompts, source.former, source.told, language=source.language)


async def _save(
    bench: Workbench, db_session: DbSession, head: Head, claimed: Claimed, fold: Fold, draft: FoldDraft
) -> None:
    """Write the version, if the scenes still say what it was made from and follow what it was folded into."""
    now = bench.clock()
    again = await _find_fold(db_session, head, claimed)
    if again is None or again.base != fold.base or again.scenes[: len(fold.scenes)] != fold.scenes:
        error = "the scenes changed while they were folded in"
        await record_failure(db_session, claimed, error=error, transient=False, now=now)
        return
    first_place = fold.base.last_place + 1 if fold.base else 1
    await narratives.save_fold(
        db_session,
        head.line,
        RECAP,
        draft,
        base=fold.base,
        first_place=first_place,
        last_place=fold.scenes[-1].last_seq,
        begins_seq=first_place,
        source_hash=hash_step(fold.scenes),
        filters=None,
        now=now,
    )
    await finish(db_session, claimed)
    await judge_fold(db_session, head, now=now, settle_s=0)
    if hides(head):
        await make_hide_due(db_session, head, now=now)
    defer(db_session, "layer_settled", head)
