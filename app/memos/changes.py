"""How memos stay true to messages that change: stale ones are made again, batches that are cut through open again.

A batch's boundaries never move. What changes inside it changes its hash alone, and only a batch whose hash has
changed is made again; so an edit costs one memo, and one that is undone before its memo is made costs none.
"""

from dataclasses import replace

import orjson

from app.chats.changes import Change
from app.chats.eligibility import Filters
from app.chats.service import Head, is_eligible, list_range, list_ranges, range_hash
from app.kit import due
from app.kit.db import DbSession
from app.memos import change_queries
from app.memos.batches import OpenBatch, recount
from app.memos.layer import NAME, first_shown, make_due


async def note_change(db_session: DbSession, change: Change, *, settle_s: float) -> None:
    """Rewrite the hashes of the batches that hold changed messages; those that say something else are due."""
    head = change.head
    if stored := head.cursors.get(NAME):
        head.cursors[NAME] = recount(OpenBatch.from_json(stored), change.pairs).to_json()
    line = (head.chat_key, head.line_id)
    touched = await change_queries.list_touched(db_session, *line, [after.seq for _, after in change.pairs])
    if not touched:
        return
    messages = {
        message.seq: message
        for message in await list_ranges(db_session, *line, [(row["first_seq"], row["last_seq"]) for row in touched])
    }
    hashes, stale, mended = [], [], []
    for row in touched:
        inside = [messages[seq] for seq in range(row["first_seq"], row["last_seq"] + 1)]
        filters = Filters.from_json(orjson.loads(row["filters"]))
        told = [message for message in inside if is_eligible(message, filters)]
        says = range_hash([(message.seq, message.digest) for message in told])
        leads_to = first_shown(inside, told)
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
        await due.forget_unasked(db_session, chat_key=line[0], line_id=line[1], layer=NAME, keys=mended)
    if stale:
        await make_due(db_session, head, stale, now=change.now, settle_s=settle_s)


async def reopen(db_session: DbSession, head: Head, from_seq: int) -> None:
    """Forget the batches from `from_seq` on; the one that goes through it fills again from its first message on.

    What a person wrote or edited stays: it moves to the new head of the line.
    """
    line = (head.chat_key, head.line_id)
    head_place = 2 * (from_seq - 1) + 1
    reaching = await change_queries.list_reaching(db_session, *line, from_seq)
    if reaching:
        memo_ids = [row["memo_id"] for row in reaching]
        keys = [str(memo_id) for memo_id in memo_ids]
        await due.delete_work(db_session, chat_key=line[0], line_id=line[1], layer=NAME, keys=keys)
        await change_queries.delete_batches(db_session, *line, memo_ids, head_place=head_place)
    await change_queries.move_written(db_session, *line, head_place=head_place)
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
    left = await list_range(db_session, *line, filling.first_seq, from_seq - 1)
    count = sum(is_eligible(message, filling.filters) for message in left)
    head.cursors[NAME] = replace(filling, count=count).to_json()
