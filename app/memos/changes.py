"""How memos stay true to messages that change: stale ones are made again, batches that are cut through open again.

A batch's boundaries never move. What changes inside it changes its hash alone, and only a batch whose hash has
changed is made again; so an edit costs one memo, and one that is undone before its memo is made costs none.
"""

from dataclasses import replace
from datetime import datetime

import orjson

from app.chats.changes import Change, Move, Shortening
from app.chats.due_work import delete_due, forget_unasked, make_due
from app.chats.eligibility import Filters
from app.chats.ranges import inside_of
from app.chats.service import Head, hash_eligible, is_eligible, list_living
from app.kit import due
from app.kit.db import DbSession
from app.memos import change_queries, queries
from app.memos.batches import OpenBatch, recount
from app.memos.layer import NAME


async def note_change(db_session: DbSession, change: Change, *, settle_s: float) -> None:
    """Rewrite the hashes of the batches that hold changed messages; those that say something else are due."""
    head = change.head
    if stored := head.cursors.get(NAME):
        head.cursors[NAME] = recount(OpenBatch.from_json(stored), change.pairs).to_json()
    line = head.line
    touched = await change_queries.list_touched(db_session, *line, [after.seq for _, after in change.pairs])
    if not touched:
        return
    messages = await list_living(db_session, *line, [(row["first_seq"], row["last_seq"]) for row in touched])
    hashes, stale, mended = [], [], []
    for row in touched:
        inside = inside_of(messages, row["first_seq"], row["last_seq"])
        filters = Filters.from_json(orjson.loads(row["filters"]))
        told = [message for message in inside if is_eligible(message, filters)]
        says = hash_eligible(inside, filters)
        leads_to = next((message.message_id for message in (*told, *inside)), None)
        if (says, leads_to) != (row["current_hash"], row["first_message_id"]):
            hashes.append((row["memo_id"], says, leads_to))
        if says == row["current_hash"] or row["deleted"] or row["edited"]:
            continue
        if says == row["source_hash"]:
            mended.append(str(row["memo_id"]))
        else:
            stale.append(due.Due(key=str(row["memo_id"]), at_seq=row["first_seq"]))
    if hashes:
        await change_queries.update_hashes(db_session, *line, hashes)
    if mended:
        await forget_unasked(db_session, head, NAME, mended)
    if stale and head.settings.memos.enabled:
        await make_due(db_session, head, NAME, stale, now=change.now, settle_s=settle_s)


async def catch_up(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """Make due what has gone stale while memos were switched off, and take up what was said meanwhile."""
    if head.settings.memos.enabled:
        if NAME not in head.cursors and head.head_seq:
            head.cursors[NAME] = (await _open_late(db_session, head)).to_json()
        rows = await change_queries.list_unnoticed(db_session, *head.line, NAME)
        if rows:
            items = [due.Due(key=str(row["memo_id"]), at_seq=row["first_seq"]) for row in rows]
            await make_due(db_session, head, NAME, items, now=now, settle_s=settle_s)


async def bring_along(db_session: DbSession, move: Move) -> None:
    """Take over what people wrote or edited behind the messages that kept their places, to where these stand now."""
    head = move.head
    line = head.line
    written = await change_queries.list_written_after(db_session, head.chat_key, move.from_line_id, move.kept_seq)
    if written:
        places = [(row["memo_id"], 2 * move.seq_here(row["seq"]) + 1) for row in written]
        await change_queries.copy_written(db_session, *line, move.from_line_id, places)
        head.memo_count = await change_queries.count_book(db_session, *line)


async def reopen(db_session: DbSession, cut_off: Shortening, *, settle_s: float) -> None:  # noqa: ARG001
    """Forget the batches from where the line was cut off on; the one that goes through it fills again from its start.

    What a person wrote or edited stays: it moves to the new head of the line.
    """
    head, from_seq = cut_off.head, cut_off.from_seq
    line = head.line
    head_place = 2 * (from_seq - 1) + 1
    reaching = await change_queries.list_reaching(db_session, *line, from_seq)
    if reaching:
        memo_ids = [row["memo_id"] for row in reaching]
        keys = [str(memo_id) for memo_id in memo_ids]
        await delete_due(db_session, head, NAME, keys)
        await change_queries.delete_batches(db_session, *line, memo_ids, head_place=head_place)
    await change_queries.move_written(db_session, *line, head_place=head_place)
    head.memo_count = await change_queries.count_book(db_session, *line)
    stored = head.cursors.get(NAME)
    if reaching and reaching[0]["first_seq"] < from_seq:
        through = reaching[0]
        filters = Filters.from_json(orjson.loads(through["filters"]))
        filling = OpenBatch(through["first_seq"], through["size"] or head.settings.memos.every_messages, filters)
    elif stored:
        filling = OpenBatch.from_json(stored)
        filling = replace(filling, first_seq=min(filling.first_seq, from_seq))
    else:
        return
    left = await list_living(db_session, *line, [(filling.first_seq, from_seq - 1)])
    count = sum(is_eligible(message, filling.filters) for message in left)
    head.cursors[NAME] = replace(filling, count=count).to_json()


async def _open_late(db_session: DbSession, head: Head) -> OpenBatch:
    """The batch that fills in a chat that ran without memos; the next append forms what is full of it.

    It begins where the window would reach back to, had there been memos from the start, or behind the last batch.
    """
    settings = head.settings.memos
    last_seq = await queries.find_last_batch_end(db_session, *head.line) or 0
    first_seq = max(last_seq + 1, head.anchor_seq - settings.window * settings.every_messages, 1)
    messages = await list_living(db_session, *head.line, [(first_seq, head.head_seq)])
    count = sum(is_eligible(message, head.filters) for message in messages)
    return OpenBatch(first_seq, settings.every_messages, head.filters, count)
