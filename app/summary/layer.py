"""The summary as the pipeline asks for it: plan, prepare, settled_seq, list_edges, refresh, list_covers.

What it asks when messages change is in `changes.py`, what goes into a context in `segment.py`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from app.chats.cover import Cover
from app.chats.due_work import delete_due, find_due, forget_unasked, make_due
from app.chats.service import (
    Advance,
    Filters,
    Head,
    find_shown,
    list_sent_after,
    list_tellable_after,
    read_head,
    update_shown,
)
from app.kit import due
from app.kit.db import DbSession
from app.kit.tokens import count_tokens
from app.narratives import service as narratives
from app.narratives.chain import Chain
from app.narratives.service import Narrative
from app.summary.folding import choose_range, reach
from app.summary.segment import word

NAME = "summary"
SUMMARY = Narrative(NAME)
FOLD = "fold"
"""The key of its due work: a line has one summary, and one fold is made at a time."""


async def plan(db_session: DbSession, advance: Advance, *, settle_s: float) -> None:
    """Make a fold due once enough has gathered that no version tells of."""
    head = advance.head
    if not _folds_by_itself(head):
        return
    covered_seq = (head.cursors.get(NAME) or {}).get("covered_seq", 0)
    # As many seqs are the least that so many messages take, so most appends ask nothing.
    enough = head.head_seq - covered_seq > head.settings.summary.threshold_messages
    if enough and await is_idle(db_session, head):
        await judge(db_session, head, now=advance.now, settle_s=settle_s)


async def prepare(db_session: DbSession, head: Head, until_seq: int, *, now: datetime) -> bool:
    """Have everything up to `until_seq` folded, and a version end there; False where a person's text is in the way."""
    if not head.settings.summary.enabled or await _told_seq(db_session, head, until_seq) >= until_seq:
        return True
    onto = await read_onto(db_session, head, until_seq=until_seq)
    if not await find_range(db_session, head, onto, until_seq=until_seq):
        return False
    work = await find_due(db_session, head, NAME, FOLD)
    asked = (work.payload or {}) if work is not None and work.failed_at is None else {}
    if asked.get("until_seq") != until_seq:  # else it is on its way
        payload = asked | {"until_seq": until_seq}
        await make_fold_due(db_session, head, at_seq=onto.covered + 1, now=now, settle_s=0, payload=payload)
    return True


async def note_cut(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """After the anchor has moved: what has left the history and no version tells of is to be folded."""
    if head.settings.summary.enabled and await is_idle(db_session, head):
        await judge(db_session, head, now=now, settle_s=settle_s)


async def settled_seq(db_session: DbSession, head: Head, from_seq: int, until_seq: int) -> int | None:  # noqa: ARG001
    """Up to which seq a version tells of everything that ends by `until_seq`: one that reaches past it is held.

    None if the summary is off, or its fold has failed for good.
    """
    if not head.settings.summary.enabled:
        return None
    work = await find_due(db_session, head, NAME, FOLD)
    if work is not None and work.failed_at is not None:
        return None  # a later fold takes in what this one could not
    return await _told_seq(db_session, head, until_seq)


async def list_edges(db_session: DbSession, head: Head, from_seq: int) -> Sequence[int]:
    """The seqs after folds."""
    if head.settings.history.edges != "folds":
        return ()
    return _edges_of(await narratives.read_chain(db_session, head.line, SUMMARY, from_place=from_seq))


async def refresh(db_session: DbSession, head: Head) -> None:
    """Write on the chat's row which version is shown: the newest true one that ends before the history."""
    if not is_kept(head):
        return
    line, anchor_seq = head.line, head.anchor_seq
    enabled = head.settings.summary.enabled
    if enabled:
        chain = await narratives.read_chain(db_session, line, SUMMARY, from_place=anchor_seq)
    else:
        chain = await narratives.read_written(db_session, line, SUMMARY)
    head.cursors[NAME] = {"covered_seq": chain.covered}
    shown: dict[str, Any] = {}
    link = chain.newest_true(anchor_seq, by_person=not enabled)
    if link:
        version = await narratives.read_version(db_session, line, SUMMARY, link.version)
        shown = {
            "version": link.version,
            "text": version.text,
            "tokens": count_tokens(word(version.text)),
            "last_seq": link.last_place,
            "stale": chain.is_stale(link.version),
        }
    if enabled:
        told_seq = link.last_place if link else 0
        if await _is_missing(db_session, head, told_seq, anchor_seq - 1):
            shown["gaps"] = [[told_seq + 1, anchor_seq - 1]]
        if head.settings.history.edges == "folds":
            shown["edges"] = [edge for edge in _edges_of(chain) if edge >= anchor_seq]
    await update_shown(db_session, *line, NAME, shown or None)


async def list_covers(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> Sequence[Cover]:
    """What the shown version tells of; and if the summary is on, what is held until a cut or still to be folded."""
    head = await read_head(db_session, chat_key, line_id)
    if head is None:
        return ()
    shown = await find_shown(db_session, chat_key, line_id, NAME)
    told_seq = shown.get("last_seq", 0)
    covers = await _list_told(db_session, head, shown, first_seq, last_seq) if told_seq >= first_seq else []
    if head.settings.summary.enabled:
        covers += await _list_coming(db_session, head, told_seq, first_seq, last_seq)
    return covers


async def _list_told(
    db_session: DbSession, head: Head, shown: Mapping[str, Any], first_seq: int, last_seq: int
) -> list[Cover]:
    """What the shown version tells of in a range, step by step: each was made by the settings of its time."""
    told_seq, version = shown["last_seq"], shown["version"]
    chain = await narratives.read_chain(db_session, head.line, SUMMARY, from_place=first_seq)
    known = {link.version for link in chain.links if link.version <= version}
    steps = await narratives.list_steps(db_session, head.line, NAME, first_seq, min(last_seq, told_seq))
    covers = [
        Cover(
            step.first_place,
            step.last_place,
            "summary",
            str(version),
            "made",
            Filters.from_json(step.filters) if step.filters else None,
        )
        for step in steps
        if step.version in known
    ]
    begins_seq = covers[0].first_seq if covers else told_seq + 1
    if begins_seq > first_seq:  # what a person wrote over, and no step is left of
        covers.insert(0, Cover(1, begins_seq - 1, "summary", str(version), "made"))
    return covers


async def _list_coming(
    db_session: DbSession, head: Head, told_seq: int, first_seq: int, last_seq: int
) -> Sequence[Cover]:
    """What is made of the messages of a range behind `told_seq`, or is to be made, and not yet shown."""
    covers = []
    held = (await narratives.read_chain(db_session, head.line, SUMMARY, from_place=first_seq)).newest_true()
    if held and held.last_place > told_seq:
        covers.append(Cover(told_seq + 1, held.last_place, "summary", str(held.version), "pending"))
        told_seq = held.last_place
    work = await find_due(db_session, head, NAME, FOLD)
    if work is not None and last_seq > told_seq:
        state: Literal["failed", "pending"] = "failed" if work.failed_at is not None else "pending"
        covers.append(Cover(told_seq + 1, last_seq, "summary", None, state))
    return covers


async def judge(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """Make a fold due if there is anything to fold as things stand, or forget one that nobody asked for."""
    work = await find_due(db_session, head, NAME, FOLD)
    asked = (work.payload or {}) if work is not None and work.failed_at is None else {}
    until_seq = asked.get("until_seq", 0)
    chain = await read_onto(db_session, head, until_seq=until_seq)
    if head.settings.summary.enabled and await find_range(db_session, head, chain, until_seq=until_seq):
        await make_fold_due(db_session, head, at_seq=chain.covered + 1, now=now, settle_s=settle_s)
        return
    if work is not None and not head.settings.summary.enabled and set(work.payload or ()) <= {"until_seq"}:
        await delete_due(db_session, head, NAME, [FOLD])  # a cut asked for it, which waits for no summary any more
    else:
        await forget_unasked(db_session, head, NAME, [FOLD])


async def read_onto(db_session: DbSession, head: Head, *, until_seq: int = 0) -> Chain:
    """What the next fold is folded onto.

    That is the newest true version, but for one: where the history has gone back into what that tells of, or is to
    begin inside it after a cut that waits for everything up to `until_seq`, and no version ends there, one is made
    that does, unless a person's text would give way to it.
    """
    for begins_seq in sorted({head.anchor_seq, max(head.anchor_seq, until_seq + 1)}):
        chain = await narratives.read_chain(db_session, head.line, SUMMARY, from_place=begins_seq)
        before = chain.newest_true(begins_seq)
        told_seq = before.last_place if before else 0
        behind = [link for link in chain.links if link.last_place > told_seq]
        is_inside = chain.covered >= begins_seq and not any(link.origin == "person" for link in behind)
        if is_inside and await _is_missing(db_session, head, told_seq, begins_seq - 1):
            return Chain([link for link in chain.links if before and link.version <= before.version])
    return chain


async def is_idle(db_session: DbSession, head: Head) -> bool:
    """Whether no fold is due: whoever is making one, or waits to try again, is not disturbed."""
    work = await find_due(db_session, head, NAME, FOLD)
    return work is None or work.failed_at is not None


async def find_range(db_session: DbSession, head: Head, chain: Chain, *, until_seq: int = 0) -> tuple[int, int] | None:
    """The range that is to be folded next into the newest true version, if any; `until_seq` is what a cut waits for."""
    settings = head.settings.summary
    most = reach(settings.threshold_messages, settings.keep_messages)
    # What scenes hide is told like anything else, but is nothing that the history could be left with.
    uncovered = await list_tellable_after(db_session, *head.line, chain.covered, most)
    # What has left the history comes first, and a version ends where that begins, whatever a cut waits for.
    late_seq = head.anchor_seq - 1
    if uncovered and uncovered[0].seq <= late_seq:
        until_seq = late_seq
    if not uncovered or uncovered[0].seq > until_seq:
        # Where the edges are not its own, folds follow the cut alone: between two cuts they would end beside its edges.
        if not _folds_by_itself(head):
            return None
        uncovered = await list_sent_after(db_session, *head.line, chain.covered, most)
    return choose_range(
        uncovered,
        chain.covered,
        threshold=settings.threshold_messages,
        keep=settings.keep_messages,
        until_seq=until_seq,
    )


async def make_fold_due(
    db_session: DbSession,
    head: Head,
    *,
    at_seq: int,
    now: datetime,
    settle_s: float,
    payload: dict[str, Any] | None = None,
) -> None:
    """Make the fold due and ring: from now on the line is to have a summary."""
    begin(head)
    await make_due(db_session, head, NAME, [due.Due(FOLD, at_seq, payload)], now=now, settle_s=settle_s)


def is_kept(head: Head) -> bool:
    """Whether the line has a summary, or is to have one: of any other chat nothing has to be read."""
    return head.settings.summary.enabled or NAME in head.cursors


def begin(head: Head) -> None:
    """Remember that the line has a summary, whatever its settings say."""
    head.cursors.setdefault(NAME, {"covered_seq": 0})


async def _told_seq(db_session: DbSession, head: Head, until_seq: int) -> int:
    """Up to which seq the newest true version tells of everything that ends by `until_seq`."""
    chain = await narratives.read_chain(db_session, head.line, SUMMARY, from_place=until_seq + 1)
    link = chain.newest_true(until_seq + 1)
    told_seq = link.last_place if link else 0
    return told_seq if await _is_missing(db_session, head, told_seq, until_seq) else until_seq


async def _is_missing(db_session: DbSession, head: Head, told_seq: int, until_seq: int) -> bool:
    """Whether there is anything to be told behind `told_seq`, up to `until_seq` (inclusive)."""
    missing = await list_tellable_after(db_session, *head.line, told_seq, 1)
    return bool(missing) and missing[0].seq <= until_seq


def _folds_by_itself(head: Head) -> bool:
    return head.settings.summary.enabled and head.settings.history.edges == "folds"


def _edges_of(chain: Chain) -> list[int]:
    return [link.last_place + 1 for link in chain.links if link.last_place]
