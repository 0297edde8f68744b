"""Removes a model's imitations of the service's time stamps. Pure.

With inline timestamps each message in a prompt begins with a stamp, such as `[04/01 22:15] Sakura: `. Models imitate
the stamps, so their replies begin with one, too. If this stamp were stored, the message would have two of them in the
next prompt.
"""

import re

from app.chats.head import Head, NewMessage
from app.kit.tokens import count_tokens

_STAMP = re.compile(r"\[\d\d/\d\d \d\d:\d\d\] ", re.ASCII)


def drop_echo(head: Head, role: str, name: str | None, content: str) -> str:
    """Return the text of a message, without an imitated stamp at its beginning.

    The stamp is dropped only in a chat with inline timestamps, from an assistant's message, if the stamp has a current
    or former name of the message's speaker and a text follows it.
    """
    if role != "assistant" or head.settings.timestamps != "inline" or not (stamp := _STAMP.match(content)):
        return content
    speaker = name if name and name.strip() else head.sole_character or "Assistant"
    for one in _list_names(head, speaker):
        prefix = f"{stamp.group()}{' '.join(one.split())}: "
        text = content[len(prefix) :]
        if content.startswith(prefix) and text.strip():
            return text
    return content


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
