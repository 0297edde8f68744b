"""Removes a model's imitations of the service's time stamps. Pure.

With inline timestamps each message in a prompt begins with a stamp, such as `[04/01 22:15] Sakura: `. Models imitate
the stamps, so their replies begin with one, too, or even with several. If these stamps were stored, the message would
have more than one in the next prompt.
"""

import re
from collections.abc import Sequence

from app.chats.head import Head, NewMessage
from app.kit.tokens import count_tokens

_STAMP = re.compile(r"\[\d\d/\d\d \d\d:\d\d\] ", re.ASCII)
_TEXT = re.compile(r"\S")


def drop_echo(head: Head, role: str, name: str | None, content: str) -> str:
    """Return the text of a message, without imitated stamps at its beginning.

    Stamps are dropped only in a chat with inline timestamps, from an assistant's message. Each must have a current or
    former name of the message's speaker, and a text must follow it. All such stamps are dropped, because a model can
    repeat the stamp in one reply.
    """
    if role != "assistant" or head.settings.timestamps != "inline" or not _STAMP.match(content):
        return content
    speaker = name if name and name.strip() else head.sole_character or "Assistant"
    prefixes = [f"{' '.join(one.split())}: " for one in _list_names(head, speaker)]
    start = 0
    while (end := _find_end(content, start, prefixes)) is not None:
        start = end
    return content[start:]


def _find_end(content: str, start: int, prefixes: Sequence[str]) -> int | None:
    """Return the index after the stamp that begins at `start`, or None if there is no stamp or no text follows it.

    No text is copied, so that dropping many stamps from a long text takes linear time.
    """
    stamp = _STAMP.match(content, start)
    if stamp is None:
        return None
    ends = (stamp.end() + len(prefix) for prefix in prefixes if content.startswith(prefix, stamp.end()))
    return next((end for end in ends if _TEXT.search(content, end)), None)


def _list_names(head: Head, name: str) -> list[str]:
    """Return the current and former names of a speaker; an old stamp can have a former name."""
    current = head.current_name(name)
    return [current, *(former for former, renamed in head.renamed.items() if renamed.name == current)]


def without_echo(head: Head, message: NewMessage) -> NewMessage:
    """Return a message without echoes, as it is stored. Its `identity` stays the hash of the text as received."""
    content = drop_echo(head, message.role, message.name, message.content)
    swipes = [drop_echo(head, message.role, message.name, text) for text in message.swipes]
    if content == message.content and swipes == [*message.swipes]:
        return message
    return message._replace(
        content=content,
        swipes=swipes,
        tokens=count_tokens(content),
        digest=head.digest(message.role, message.name, content),
    )
