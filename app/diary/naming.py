"""Moves the unnamed diary of a chat to the chat's sole character, once the chat names it.

Entries keep their numbers, and the folded part moves along. If the character already has a diary, the entries of both
are merged in the order in which they were written, and folds that lack some of them are made again.
"""

from datetime import datetime

from app.chats.characters import find_sole
from app.chats.head import Head
from app.chats.scheduling import schedule, unschedule
from app.diary import change_queries, queries
from app.diary.handlers import FOLD, NAME, WRITE, narrative_of, note_entries, writing_work
from app.kit.db import DbSession
from app.narratives import service as narratives


async def adopt_nameless(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """Move the unnamed diary, and its scheduled work, to the chat's sole character, if the chat has one now."""
    line = head.line
    character = find_sole((await queries.read_cast(db_session, line)).characters)
    if character is None:
        return
    await _pass_on_work(db_session, head, character, now=now, settle_s=settle_s)
    numbers = await change_queries.name_entries(db_session, line, character)
    if not numbers:
        return
    await narratives.rename_subject(db_session, line, narrative_of(""), narrative_of(character))
    everything = [1, head.cursors[NAME]["number"]]
    await note_entries(db_session, head, character, everything, now=now, settle_s=settle_s)


async def _pass_on_work(db_session: DbSession, head: Head, character: str, *, now: datetime, settle_s: float) -> None:
    """Schedule the unwritten entries of the unnamed diary for the character, and cancel its fold."""
    line = head.line
    writing = await change_queries.list_writing(db_session, line, NAME, WRITE, 0)
    nobodys = [row for row in writing if row["key"] == f"{WRITE}{row['first_seq']}:"]
    keys = [FOLD, *(row["key"] for row in nobodys)]
    await unschedule(db_session, head, NAME, keys)
    if nobodys:
        items = [writing_work(character, row["first_seq"], row["last_seq"], row["number"]) for row in nobodys]
        await schedule(db_session, head, NAME, items, now=now, settle_s=settle_s)
