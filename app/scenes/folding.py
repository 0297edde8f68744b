"""Reads the state of the running recap: the version for contexts, and the scenes to fold into it next.

A *step* is the range of scenes that one fold added to a version. It is valid while none of these scenes has changed.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from operator import itemgetter

from app.chats.head import Head
from app.chats.scheduling import cancel_automatic, find_scheduled
from app.kit.db import DbSession
from app.narratives import service as narratives
from app.narratives.chain import Chain, Link
from app.narratives.service import Narrative
from app.scenes import queries
from app.scenes.recap_fold import MOST_SCENES, ClosedScene, choose_fold, find_limit, hash_steps
from app.scenes.schedule import DEBOUNCE_S, FOLD, NAME, schedule_once
from app.scenes.settings import SceneSettings

RECAP = Narrative("recap")


@dataclass(frozen=True, slots=True)
class RecapState:
    """The state of the running recap.

    Attributes:
        chain: The current version and those it was built on.
        shown: The latest valid version that ends at or before `limit_seq`. Contexts contain it, and the next fold
            builds on it.
        limit_seq: The last seq that may be covered; `recap.exclude_latest` leaves out the newest scenes.

    """

    chain: Chain
    shown: Link | None
    limit_seq: int

    @property
    def covered_seq(self) -> int:
        """The last seq that the version for contexts covers; 0 without one."""
        return self.shown.last_unit if self.shown else 0

    @property
    def leaves_out_written(self) -> bool:
        """Whether a person's version is not shown because it covers scenes that `recap.exclude_latest` leaves out.

        It can be shown again once enough newer scenes are closed.
        """
        links = self.chain.links
        return any(one.origin == "person" and not one.deleted and one.last_unit > self.limit_seq for one in links)


@dataclass(frozen=True, slots=True)
class Fold:
    """The scenes to fold next, in order and never empty, and the version to fold them into.

    `base` is None if the fold begins a new recap. `limit_seq` is the last seq that may be covered.
    """

    base: Link | None
    scenes: tuple[ClosedScene, ...]
    limit_seq: int


async def read_recap_state(db_session: DbSession, head: Head) -> RecapState:
    """Read the state of the running recap; while scenes are off, only versions that a person wrote count."""
    scenes = SceneSettings.of(head.settings)
    left_out = scenes.recap.exclude_latest
    newest = await queries.list_newest_breaks(db_session, head, left_out + 1) if left_out else []
    limit_seq = find_limit(newest, left_out, head.head_seq)
    if scenes.enabled:
        chain = await narratives.read_chain(db_session, head.line, RECAP, from_unit=limit_seq + 1)
    else:
        chain = await narratives.read_written(db_session, head.line, RECAP)
    return RecapState(chain, chain.latest_valid(limit_seq + 1, by_person=not scenes.enabled), limit_seq)


async def find_fold(db_session: DbSession, head: Head, *, from_nothing: bool = False) -> Fold | None:
    """Return the next fold, or None if there is nothing to fold; `from_nothing` begins with an empty recap.

    Nothing is folded while a person's version is left out: the fold would build on an older version and lose that text.
    """
    recap_state = await read_recap_state(db_session, head)
    if recap_state.leaves_out_written and not from_nothing:
        return None
    base = None if from_nothing else recap_state.shown
    from_seq = base.last_unit + 1 if base else 1
    uncovered = await queries.list_closed_between(db_session, head, from_seq, recap_state.limit_seq, limit=MOST_SCENES)
    chosen = choose_fold(uncovered, recap_state.limit_seq)
    return Fold(base, tuple(chosen), recap_state.limit_seq) if chosen else None


async def reconcile_fold_work(
    db_session: DbSession, head: Head, *, now: datetime, settle_s: float = DEBOUNCE_S, only_news: bool = False
) -> None:
    """Schedule a fold if there is anything to fold; else cancel the scheduled one, unless a person asked for it.

    With `only_news`, no fold is scheduled if there are versions newer than the current one, and their valid steps cover
    all scenes that could be folded. A person has then gone back to an older version, and the next fold waits for a
    scene that no newer version covers.
    """
    fold = await find_fold(db_session, head) if SceneSettings.of(head.settings).enabled else None
    if fold and not (only_news and await _is_covered_by_newer(db_session, head, fold)):
        at_seq = fold.scenes[0].first_seq
        await schedule_once(db_session, head, FOLD, at_seq=at_seq, now=now, settle_s=settle_s)
    else:
        await cancel_automatic(db_session, head, NAME, [FOLD])


async def pass_over_failed(db_session: DbSession, head: Head, recap_state: RecapState) -> None:
    """Schedule a fold that passes over scenes whose recaps have failed for good, so that they do not block later ones.

    Nothing is scheduled if a fold is scheduled already, or if a version that is not the current one has passed over the
    newest of these scenes and is valid. In the second case, a person has gone back to an older version.
    """
    failed = await queries.find_newest_failed(db_session, head, recap_state.covered_seq, recap_state.limit_seq)
    if failed is None or await find_scheduled(db_session, head, NAME, FOLD):
        return
    last_seq, failed_at = failed
    steps = await narratives.list_steps(db_session, head.line, RECAP.layer, last_seq, last_seq)
    if all(step.source_hash != step.current_hash for step in steps):
        await reconcile_fold_work(db_session, head, now=failed_at)


async def _is_covered_by_newer(db_session: DbSession, head: Head, fold: Fold) -> bool:
    """Return whether valid steps of newer versions cover the scenes of this fold and of the folds that would follow."""
    chain = await narratives.read_chain(db_session, head.line, RECAP)
    current = chain.links[-1].version if chain.links else 0
    ends = [scene.last_seq for scene in fold.scenes]
    if len(ends) == MOST_SCENES:
        closed = await queries.list_closed(db_session, head)
        after = [(last_seq, is_ready) for _, last_seq, is_ready in closed if ends[-1] < last_seq <= fold.limit_seq]
        ends += [last_seq for last_seq, _ in takewhile(itemgetter(1), after)]
    steps = await narratives.list_steps(db_session, head.line, RECAP.layer, ends[0], ends[-1])
    later = [step for step in steps if step.version > current and step.source_hash == step.current_hash]
    return all(any(step.first_unit <= last_seq <= step.last_unit for step in later) for last_seq in ends)


async def rehash_steps(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> None:
    """Update the hashes of the steps of the running recap that overlap a range of seqs (inclusive)."""
    await db_session.flush()
    steps = await narratives.list_steps(db_session, head.line, RECAP.layer, first_seq, last_seq)
    if not steps:
        return
    spans = [(step.first_unit, step.last_unit) for step in steps]
    first_unit, last_unit = min(first for first, _ in spans), max(last for _, last in spans)
    scenes = await queries.list_closed_between(db_session, head, first_unit, last_unit)
    hashes = hash_steps(scenes, spans)
    rows = [
        (step.subject, step.version, current_hash)
        for step, current_hash in zip(steps, hashes, strict=True)
        if current_hash != step.current_hash
    ]
    await narratives.update_hashes(db_session, head.line, RECAP.layer, rows)
