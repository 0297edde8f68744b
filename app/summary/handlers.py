"""Handles appends, cuts, coverage and the context cache of the summary. `changes.py` handles messages that change.

A version that is folded ahead of a cut *waits*: contexts contain it once all messages that it covers have left the
history. A *step* is the range of messages that one fold added. A *kept text* is a text of a person that all later
versions contain word for word; contexts contain it at once.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from app.chats.coverage import Coverage
from app.chats.eligibility import Filters
from app.chats.events import AnchorMoved, MessagesAppended
from app.chats.head import Head
from app.chats.heads import find_cache, read_head, update_cache
from app.chats.scheduling import find_scheduled
from app.kit.db import DbSession
from app.kit.tokens import count_tokens
from app.narratives import service as narratives
from app.narratives.chain import Chain
from app.summary.next_fold import (
    FOLD,
    NAME,
    SUMMARY,
    find_range,
    folds_by_itself,
    has_summary,
    is_idle,
    is_missing,
    read_onto,
    reconcile_fold_work,
    schedule_fold,
)
from app.summary.segment import word
from app.summary.settings import FOLD_EDGES, SummarySettings


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Schedule a fold once enough messages are not covered by any version."""
    head = event.head
    if not folds_by_itself(head):
        return
    covered_seq = (head.cursors.get(NAME) or {}).get("covered_seq", 0)
    # N messages span at least N seqs, so most appends skip the query.
    enough = head.head_seq - covered_seq > SummarySettings.of(head.settings).threshold_messages
    if enough and await is_idle(db_session, head):
        await reconcile_fold_work(db_session, head, now=event.now, settle_s=event.settle_s)


async def request_coverage(db_session: DbSession, head: Head, until_seq: int, *, now: datetime) -> bool:
    """Schedule a fold so that a version ends at `until_seq`; return False if a person's text prevents that."""
    if not SummarySettings.of(head.settings).enabled or await _covered_seq(db_session, head, until_seq) >= until_seq:
        return True
    onto = await read_onto(db_session, head, until_seq=until_seq)
    if not await find_range(db_session, head, onto, until_seq=until_seq):
        return False
    work = await find_scheduled(db_session, head, NAME, FOLD)
    asked = (work.payload or {}) if work is not None and work.failed_at is None else {}
    if asked.get("until_seq") != until_seq:  # else it is scheduled already
        payload = asked | {"until_seq": until_seq}
        await schedule_fold(db_session, head, at_seq=onto.covered + 1, now=now, settle_s=0, payload=payload)
    return True


async def on_cut(db_session: DbSession, event: AnchorMoved) -> None:
    """Schedule a fold of messages that have left the history and that no version covers."""
    head = event.head
    if SummarySettings.of(head.settings).enabled and await is_idle(db_session, head):
        await reconcile_fold_work(db_session, head, now=event.now, settle_s=event.settle_s)


async def covered_through(db_session: DbSession, head: Head, from_seq: int, until_seq: int) -> int | None:  # noqa: ARG001
    """Return the last seq that a version covers, or `until_seq` if no message in between is to be summarised.

    A version that ends after `until_seq` waits for a cut, so it does not count, unless it is a kept text that a person
    wrote. Returns None if the summary is off or its fold has failed for good.
    """
    if not SummarySettings.of(head.settings).enabled:
        return None
    work = await find_scheduled(db_session, head, NAME, FOLD)
    if work is not None and work.failed_at is not None:
        return None  # no cut has to wait for it: a later fold includes the messages that this one could not fold
    return await _covered_seq(db_session, head, until_seq)


async def list_edges(db_session: DbSession, head: Head, from_seq: int) -> Sequence[int]:
    """Return the seqs that directly follow the last seqs of versions: the history can begin there."""
    return _edges_of(await narratives.read_chain(db_session, head.line, SUMMARY, from_unit=from_seq))


async def refresh_cache(db_session: DbSession, head: Head) -> None:
    """Store on the line's row the version for contexts, the gap between it and the history, and the edges.

    The version is the latest valid one that ends before the history, or a kept text that a person wrote after that one.
    While the summary is off, only versions that a person wrote count.
    """
    if not has_summary(head):
        return
    line, anchor_seq = head.line, head.anchor_seq
    enabled = SummarySettings.of(head.settings).enabled
    if enabled:
        chain = await narratives.read_chain(db_session, line, SUMMARY, from_unit=anchor_seq)
    else:
        chain = await narratives.read_written(db_session, line, SUMMARY)
    head.cursors[NAME] = {"covered_seq": chain.covered}
    shown: dict[str, Any] = {}
    link = chain.latest_usable(anchor_seq, by_person=not enabled)
    if link:
        version = await narratives.read_version(db_session, line, SUMMARY, link.version)
        text = narratives.join_texts(version.kept_text, version.text)
        shown = {
            "version": link.version,
            "text": text,
            "tokens": count_tokens(word(text)),
            "last_seq": link.last_unit,
            "stale": chain.is_stale(link.version),
        }
    if enabled:
        covered_seq = link.last_unit if link else 0
        if await is_missing(db_session, head, covered_seq, anchor_seq - 1):
            shown["gaps"] = [[covered_seq + 1, anchor_seq - 1]]
        if head.settings.history.edges == FOLD_EDGES:
            shown["edges"] = [edge for edge in _edges_of(chain) if edge >= anchor_seq]
    await update_cache(db_session, *line, NAME, shown or None)


async def list_coverage(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> Sequence[Coverage]:
    """Return the coverage by the version in contexts and, if the summary is on, by a waiting version and a due fold."""
    head = await read_head(db_session, chat_key, line_id)
    if head is None:
        return ()
    shown = await find_cache(db_session, chat_key, line_id, NAME)
    covered_seq = shown.get("last_seq", 0)
    covers = await _list_covered(db_session, head, shown, first_seq, last_seq) if covered_seq >= first_seq else []
    if SummarySettings.of(head.settings).enabled:
        covers += await _list_pending(db_session, head, covered_seq, first_seq, last_seq)
    return covers


async def _list_covered(
    db_session: DbSession, head: Head, shown: Mapping[str, Any], first_seq: int, last_seq: int
) -> list[Coverage]:
    """Return the coverage of a range by the version in contexts, step by step: each step has its own filters."""
    covered_seq, version = shown["last_seq"], shown["version"]
    chain = await narratives.read_chain(db_session, head.line, SUMMARY, from_unit=first_seq)
    known = {link.version for link in chain.links if link.version <= version}
    steps = await narratives.list_steps(db_session, head.line, NAME, first_seq, min(last_seq, covered_seq))
    covers = [
        Coverage(
            step.first_unit,
            step.last_unit,
            "summary",
            str(version),
            "made",
            Filters.from_json(step.filters) if step.filters else None,
        )
        for step in steps
        if step.version in known
    ]
    begins_seq = covers[0].first_seq if covers else covered_seq + 1
    if begins_seq > first_seq:  # a person's text covers this part, whose steps no longer exist
        covers.insert(0, Coverage(1, begins_seq - 1, "summary", str(version), "made"))
    return covers


async def _list_pending(
    db_session: DbSession, head: Head, covered_seq: int, first_seq: int, last_seq: int
) -> Sequence[Coverage]:
    """Return the coverage after `covered_seq` by a waiting version and a due fold, which no context contains yet."""
    covers = []
    waiting = (await narratives.read_chain(db_session, head.line, SUMMARY, from_unit=first_seq)).latest_valid()
    if waiting and waiting.last_unit > covered_seq:
        covers.append(Coverage(covered_seq + 1, waiting.last_unit, "summary", str(waiting.version), "pending"))
        covered_seq = waiting.last_unit
    work = await find_scheduled(db_session, head, NAME, FOLD)
    if work is not None and last_seq > covered_seq:
        state: Literal["failed", "pending"] = "failed" if work.failed_at is not None else "pending"
        covers.append(Coverage(covered_seq + 1, last_seq, "summary", None, state))
    return covers


async def _covered_seq(db_session: DbSession, head: Head, until_seq: int) -> int:
    """Return the last seq that the summary covers after a cut, when the history begins at `until_seq` + 1.

    It is the last seq of the version that contexts then contain, or `until_seq` if no message after that version, up to
    `until_seq`, is to be summarised.
    """
    chain = await narratives.read_chain(db_session, head.line, SUMMARY, from_unit=until_seq + 1)
    link = chain.latest_usable(until_seq + 1)
    covered_seq = link.last_unit if link else 0
    return covered_seq if await is_missing(db_session, head, covered_seq, until_seq) else until_seq


def _edges_of(chain: Chain) -> list[int]:
    return [link.last_unit + 1 for link in chain.links if link.last_unit]
