"""Operations on swipes: add one, select one, list them.

The selected text is the `content` of the message. The other texts are in a table of their own. Memos, contexts and
searches do not read this table, so they never contain a text that is not selected.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from app.chats.chat_lock import ChatRef
from app.chats.errors import SwipeNotFound, TooManySwipes
from app.chats.models import Message, Swipe
from app.chats.revision import record_nothing
from app.kit.db import DbSession
from app.messages import change_queries
from app.messages.echoes import drop_echo
from app.messages.editing import as_range, lock_message, note_texts, save_message, set_content
from app.messages.schemas import MAX_SWIPES


async def add_swipe(db_session: DbSession, ref: ChatRef, message_id: str, content: str, *, now: datetime) -> Message:
    """Add an alternative text after the others and select it. Raises MessageNotFound, TooManySwipes."""
    head, message = await lock_message(db_session, ref, message_id)
    before = as_range(message)
    swipe_index = 1 + await change_queries.count_swipes(db_session, message)
    check_swipes(message_id, swipe_index)
    _put_aside(db_session, message)
    message.selected_swipe = swipe_index
    set_content(head, message, drop_echo(head, message.role, message.name, content))
    note_texts(db_session, head, [(message_id, message.content)], now)
    await save_message(db_session, head, before, message, now)
    return message


async def select_swipe(db_session: DbSession, ref: ChatRef, message_id: str, index: int, *, now: datetime) -> Message:
    """Select an alternative by its index, from 0. Raises MessageNotFound, SwipeNotFound."""
    head, message = await lock_message(db_session, ref, message_id)
    if index == message.selected_swipe:
        record_nothing(db_session, head.line)
        return message
    wanted = await change_queries.find_swipe(db_session, message, index)
    if wanted is None:
        count = 1 + await change_queries.count_swipes(db_session, message)
        raise SwipeNotFound(
            f"The message {message_id!r} has no swipe {index}; it has {count}, numbered from 0.",
            errors=[{"loc": ["body", "index"], "msg": f"must be at most {count - 1}"}],
        )
    before = as_range(message)
    _put_aside(db_session, message)
    await db_session.delete(wanted)
    message.selected_swipe = index
    set_content(head, message, wanted.content)
    await save_message(db_session, head, before, message, now)
    return message


async def list_swipes(db_session: DbSession, messages: Iterable[Message]) -> Mapping[int, list[str]]:
    """Return all texts of each of `messages` (of one line), by seq; only `content` if there are no alternatives."""
    by_seq = {message.seq: message for message in messages}
    texts: dict[int, list[str]] = {seq: [] for seq in by_seq}
    if by_seq:
        first = next(iter(by_seq.values()))
        for row in await change_queries.list_swipes(db_session, first.chat_key, first.line_id, list(by_seq)):
            texts[row["seq"]].append(row["content"])
    for seq, message in by_seq.items():
        texts[seq].insert(message.selected_swipe, message.content)
    return texts


def check_swipes(message_id: str, last_index: int) -> None:
    """Raise TooManySwipes if the index of a message's last swipe would be beyond the maximum."""
    if last_index >= MAX_SWIPES:
        raise TooManySwipes(
            f"The message {message_id!r} would have {last_index + 1} swipes; the maximum is {MAX_SWIPES}. "
            "Select one of them and edit it instead.",
            errors=[{"loc": ["body"], "msg": f"would be swipe {last_index + 1} of at most {MAX_SWIPES}"}],
        )


def _put_aside(db_session: DbSession, message: Message) -> None:
    """Store the selected text as an unselected alternative."""
    db_session.add(
        Swipe(
            chat_key=message.chat_key,
            line_id=message.line_id,
            seq=message.seq,
            swipe_index=message.selected_swipe,
            content=message.content,
        )
    )
