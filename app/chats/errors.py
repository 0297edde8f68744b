"""What can be wrong with a request about chats and messages."""

from app.kit.errors import Conflict, NotFound


class ChatNotFound(NotFound):
    """There is no such chat for this caller."""

    code = "chat_not_found"
    title = "Unknown chat"


class LineNotFound(NotFound):
    """The chat has no such line."""

    code = "line_not_found"
    title = "Unknown line"


class MessageNotFound(NotFound):
    """The chat has no such message, or it was deleted."""

    code = "message_not_found"
    title = "Unknown message"


class MessageIdTaken(Conflict):
    """An id was appended before with another role or text."""

    code = "message_id_taken"
    title = "Message id taken"


class ChatBusy(Conflict):
    """The chat was created, erased or switched again and again while this request waited."""

    code = "chat_busy"
    title = "Chat is being replaced"
