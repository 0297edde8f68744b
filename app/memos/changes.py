"""Updates memos when messages change: schedules stale memos, and reopens a batch that a truncation cuts through.

A batch's boundaries never move. A change inside a batch changes only its hash, and only a batch whose hash has changed
is summarised again. So an edit causes at most one memo to be made again, and an edit that is undone before its memo is
made causes none.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from app.chats.eligibility import Filters, is_eligible
from app.chats.events import LineTruncated, MessagesChanged, MessagesMoved, SettingsChanged
from app.chats.head import Head
from app.chats.scheduling import unschedule
from app.kit.db import DbSession
from app.layers.derived import DerivedRow, Rehashed, rehash, reschedule, schedule_unscheduled
from app.memos import change_queries, queries
from app.memos.batches import OpenBatch, recount
from app.memos.models import NAME, Memo
from app.memos.settings import MemoSettings
from app.messages.reads import list_not_deleted


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Update the hashes of the batches that contain changed messages, and schedule the memos that became stale."""
    head = event.head
    if stored := head.cursors.get(NAME):
        head.cursors[NAME] = recount(OpenBatch.from_json(stored), event.pairs).to_json()
    touched = await change_queries.list_touched(db_session, *head.line, [after.seq for _, after in event.pairs])
    rehashed = await rehash(db_session, head, [_derived(row) for row in touched])
    if rewrites := list_rewrites(rehashed):
        await change_queries.update_hashes(db_session, *head.line, rewrites)
    await reschedule(
        db_session,
        head,
        NAME,
        [one for one in rehashed if one.has_changed],
        enabled=MemoSettings.of(head.settings).enabled,
        now=event.now,
        settle_s=event.settle_s,
    )


def _derived(row: asyncpg.Record) -> DerivedRow[asyncpg.Record]:
    return DerivedRow(
        of=row,
        key=str(row["memo_id"]),
        first_seq=row["first_seq"],
        last_seq=row["last_seq"],
        filters=Filters.from_json(orjson.loads(row["filters"])),
        source_hash=row["source_hash"],
        current_hash=row["current_hash"],
        keeps_text=row["deleted"] or row["origin"] == "person",
    )


def list_rewrites(rehashed: Sequence[Rehashed[Any]]) -> list[tuple[UUID, bytes, str | None]]:
    """Return (memo_id, current_hash, first_message_id) of the batches whose hash or first message has changed. Pure.

    The first message of a batch is its first eligible message, or the first of all if none is eligible.
    """
    rewrites = []
    for batch in rehashed:
        eligible = (message for message in batch.messages if is_eligible(message, batch.row.filters))
        first = next(eligible, next(iter(batch.messages), None))
        message_id = first.message_id if first else None
        if batch.has_changed or message_id != batch.row.of["first_message_id"]:
            rewrites.append((batch.row.of["memo_id"], batch.current_hash, message_id))
    return rewrites


async def on_settings_changed(db_session: DbSession, event: SettingsChanged) -> None:
    """While memos are on, schedule stale memos that are not scheduled, and open a batch if the line has none.

    While memos are off, memos that become stale are not scheduled, and new messages get no batch.
    """
    head = event.head
    if MemoSettings.of(head.settings).enabled:
        if NAME not in head.cursors and head.head_seq:
            head.cursors[NAME] = (await _open_late(db_session, head)).to_json()
        await schedule_unscheduled(
            db_session,
            head,
            NAME,
            Memo.memo_id,
            condition=Memo.deleted_at.is_(None),
            now=event.now,
            settle_s=event.settle_s,
        )


async def on_move(db_session: DbSession, event: MessagesMoved) -> None:
    """Copy the memos that people wrote or edited and that come after `kept_seq` on the old line.

    The copies have no batches. A copy follows the first message of the memo's former batch, or the message that the
    memo followed. If the new line does not have this message, the copy follows the last one before it that both have.
    """
    head = event.head
    line = head.line
    written = await change_queries.list_written_after(db_session, head.chat_key, event.from_line_id, event.kept_seq)
    if written:
        sort_keys = [(row["memo_id"], 2 * event.seq_here(row["seq"]) + 1) for row in written]
        await change_queries.copy_written(db_session, *line, event.from_line_id, sort_keys)
        head.memo_count = await change_queries.count_book(db_session, *line)


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Delete the batches that end after the new end of the line, and reopen the batch that contains the new end.

    The reopened batch is counted again from its first message. A person's memo whose position is after the new end of
    the line, and an edited memo whose batch is deleted, move to the new end.
    """
    head, from_seq = event.head, event.from_seq
    line = head.line
    end_sort_key = 2 * (from_seq - 1) + 1
    reaching = await change_queries.list_reaching(db_session, *line, from_seq)
    if reaching:
        memo_ids = [row["memo_id"] for row in reaching]
        keys = [str(memo_id) for memo_id in memo_ids]
        await unschedule(db_session, head, NAME, keys)
        await change_queries.delete_batches(db_session, *line, memo_ids, end_sort_key=end_sort_key)
    await change_queries.move_written(db_session, *line, end_sort_key=end_sort_key)
    head.memo_count = await change_queries.count_book(db_session, *line)
    stored = head.cursors.get(NAME)
    if reaching and reaching[0]["first_seq"] < from_seq:
        through = reaching[0]
        filters = Filters.from_json(orjson.loads(through["filters"]))
        size = through["size"] or MemoSettings.of(head.settings).every_messages
        filling = OpenBatch(through["first_seq"], size, filters)
    elif stored:
        filling = OpenBatch.from_json(stored)
        filling = replace(filling, first_seq=min(filling.first_seq, from_seq))
    else:
        return
    left = await list_not_deleted(db_session, *line, [(filling.first_seq, from_seq - 1)])
    count = sum(is_eligible(message, filling.filters) for message in left)
    head.cursors[NAME] = replace(filling, count=count).to_json()


async def _open_late(db_session: DbSession, head: Head) -> OpenBatch:
    """Return the open batch of a chat that ran without memos.

    It begins after the last batch, or `window` × `every_messages` seqs before the anchor (the first seq of the
    history), whichever is later. If it has enough messages for one or more batches, the next append forms these
    batches.
    """
    settings = MemoSettings.of(head.settings)
    last_seq = await queries.find_last_batch_end(db_session, *head.line) or 0
    first_seq = max(last_seq + 1, head.anchor_seq - settings.window * settings.every_messages, 1)
    messages = await list_not_deleted(db_session, *head.line, [(first_seq, head.head_seq)])
    count = sum(is_eligible(message, head.filters) for message in messages)
    return OpenBatch(first_seq, settings.every_messages, head.filters, count)
