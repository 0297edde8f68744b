"""The reference model of tool calls: which reply each call belongs to, and whether the reply still has its text.

It has no hashes and no state that follows changes: whether a call is shown is looked up in the messages each time.
"""

from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracle.reference.lines import Line, Message

RETRY_WINDOW = timedelta(minutes=10)


@dataclass
class Call:
    """A call of a tool that wrote an entry.

    Attributes:
        words: Its argument.
        named: The message that it names, and whether it waits for the next alternative of that message.
        asked: The id and the text of the newest message when it was made.
        at: The seq of that message, or of the named one if that is later; of an open call only.
        awaits_user: Whether the message that the reply answers may still be to come.
        bound: The id and the text of its reply; None while it is open, and in an empty chat.
        is_open: Whether its reply is still to come.
        released: Whether a person edited the entry or keeps it.
        is_deleted: Whether a person deleted the entry.
        id: The id of the entry, as read from the service.

    """

    words: str
    named: tuple[str | None, bool]
    asked: tuple[str, str] | None
    at: int
    awaits_user: bool
    bound: tuple[str, str] | None
    is_open: bool
    made_at: datetime
    released: bool = False
    edited: bool = False
    is_deleted: bool = False
    id: str = ""

    def matches(self, line: "Line") -> bool:
        """Whether the reply has the text of the call now."""
        if self.is_open:
            return False
        if self.bound is None:
            return True
        message = line.find(self.bound[0])
        return message is not None and not message.deleted and not message.hidden and message.text == self.bound[1]

    def seq(self, line: "Line") -> int:
        """Return the seq of the reply; of an open call, that of the newest message when it was made."""
        message = line.find(self.bound[0]) if self.bound else None
        return message.seq if message else self.at


def is_reply(message: "Message") -> bool:
    return message.role == "assistant" and message.kind is None and not message.is_call


def make_call(line: "Line", words: str, named: tuple[str | None, bool], now: datetime) -> Call | None:
    """Return a call that is made now; None if it names a message that is not a reply, or the swipe of none."""
    present = [one for one in line.not_deleted if one.kind is None and not one.hidden]
    newest = present[-1] if present else None
    message_id, next_swipe = named
    if message_id is None and next_swipe:
        if newest is None or not is_reply(newest):
            return None
        message_id = newest.id
    message = line.find(message_id) if message_id else None
    if message and (message.deleted or message.role != "assistant"):
        return None
    if message is None and next_swipe:
        return None
    asked, at = ((newest.id, newest.text), newest.seq) if newest else (None, 0)
    if message and next_swipe:
        named = (message.id, True)
        return Call(words, named, asked, max(at, message.seq), False, None, True, now)
    reply = message or (newest if newest and message_id is None and is_reply(newest) else None)
    awaits_user = message_id is not None and reply is None and (newest is None or newest.role != "user")
    is_open = reply is None and (newest is not None or message_id is not None)
    bound = (reply.id, reply.text) if reply else None
    named = (reply.id if reply else message_id, False)
    return Call(words, named, asked, reply.seq if reply else at, awaits_user, bound, is_open, now)


def find_retried(line: "Line", call: Call) -> Call | None:
    """Return the call that `call` repeats: the same words, message and reply, while that reply has its text."""
    for one in reversed(line.calls):
        same = (one.words, one.asked, one.bound, one.is_open) == (call.words, call.asked, call.bound, call.is_open)
        names = (one.bound[0] if one.bound else one.named[0], one.named[1])
        is_recent = one.made_at >= call.made_at - RETRY_WINDOW
        is_there = one.seq(line) == call.seq(line) and (one.is_open or one.matches(line))
        if same and names == call.named and is_recent and is_there:
            return one
    return None


def resolve(calls: Iterable[Call], fresh: Sequence["Message"]) -> list[Call]:
    """Return the calls that remain after messages were appended; those whose reply is among them are bound to it."""
    return [call for call in calls if not call.is_open or _remains(call, fresh)]


def is_discarded(line: "Line", call: Call) -> bool:
    """Whether the message that an open call answers is gone, or the one of whose next alternative it is."""
    message_id, next_swipe = call.named
    if not call.is_open or (message_id and not next_swipe):
        return False
    asked_id = call.asked[0] if call.asked else ""
    message = line.find(message_id or asked_id)
    return message is None or message.deleted or (message.hidden and not next_swipe)


def bind_text(line: "Line", message: "Message", text: str) -> None:
    """Bind the calls that wait for the next alternative of a message, which has got the text."""
    for call in line.calls:
        if call.is_open and call.named == (message.id, True):
            call.bound, call.is_open = (message.id, text), False


def move_calls(former: "Line", result: "Line", kept_seq: int, moved: Collection[str]) -> list[Call]:
    """Return the calls of a new line, which has the former one's messages up to `kept_seq` and those in `moved`."""
    calls = []
    for call in deepcopy(former.calls):
        seq = call.seq(former)
        if call.bound and seq > kept_seq and call.bound[0] not in moved:
            continue
        if call.is_open and seq > kept_seq:
            followed = [one for one in former.messages if one.seq <= seq and one.id in moved]
            found = result.find(followed[-1].id) if followed else None
            call.at = found.seq if found else kept_seq
        calls.append(call)
    return [call for call in calls if not is_discarded(result, call)]


def _remains(call: Call, fresh: Sequence["Message"]) -> bool:
    message_id, next_swipe = call.named
    named = next((one for one in fresh if one.id == message_id and not next_swipe), None)
    if named:
        return _bind(call, named) if named.role == "assistant" else False
    for message in fresh:
        if message.seq <= call.at:
            continue
        if message.role == "user":
            if not call.awaits_user:
                return False
            call.awaits_user = False
        elif message_id is None and is_reply(message):
            return _bind(call, message)
    return True


def _bind(call: Call, message: "Message") -> bool:
    call.bound, call.is_open = (message.id, message.text), False
    return True
