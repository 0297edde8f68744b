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


class SwipeNotFound(NotFound):
    """The message has no such swipe."""

    code = "swipe_not_found"
    title = "Unknown swipe"


class CheckpointNotFound(NotFound):
    """The chat has no checkpoint of that name."""

    code = "checkpoint_not_found"
    title = "Unknown checkpoint"


class MessageIdTaken(Conflict):
    """An id was appended before with another role or text."""

    code = "message_id_taken"
    title = "Message id taken"


class ChatBusy(Conflict):
    """The chat was created, erased or switched again and again while this request waited."""

    code = "chat_busy"
    title = "Chat is being replaced"


class ChatTaken(Conflict):
    """A chat of that id is there already."""

    code = "chat_taken"
    title = "Chat id taken"


class CheckpointTaken(Conflict):
    """The chat has a checkpoint of that name already."""

    code = "checkpoint_taken"
    title = "Checkpoint name taken"


class LineIsCheckpoint(Conflict):
    """A checkpoint's line stays as it was frozen."""

    code = "line_is_checkpoint"
    title = "Line is a checkpoint"
