"""Errors of requests about chats and messages."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from sqlalchemy.exc import DBAPIError

from app.kit.errors import ChatBusy, Conflict, NotFound
from app.kit.unavailable import driver_error


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
    """The chat has no checkpoint with this name."""

    code = "checkpoint_not_found"
    title = "Unknown checkpoint"


class CharacterNotFound(NotFound):
    """The chat has no such character."""

    code = "character_not_found"
    title = "Unknown character"


class CharacterMismatch(Conflict):
    """The id and the name of a given character do not belong to the same stored character."""

    code = "character_mismatch"
    title = "Id and name do not match"


class CharacterTaken(Conflict):
    """Another character has this name as its current or a former name."""

    code = "character_taken"
    title = "Character name taken"


class MessageIdTaken(Conflict):
    """A message with this id was appended before with another role or text."""

    code = "message_id_taken"
    title = "Message id taken"


class TooManySwipes(Conflict):
    """The message has the maximum number of swipes."""

    code = "too_many_swipes"
    title = "Too many swipes"


class ChatTaken(Conflict):
    """A chat with this id already exists."""

    code = "chat_taken"
    title = "Chat id taken"


class CheckpointTaken(Conflict):
    """The chat already has a checkpoint with this name."""

    code = "checkpoint_taken"
    title = "Checkpoint name taken"


class TooManyCheckpoints(Conflict):
    """The chat has the maximum number of checkpoints."""

    code = "too_many_checkpoints"
    title = "Too many checkpoints"


class TooManyLines(Conflict):
    """The chat has the maximum number of lines that are not checkpoints."""

    code = "too_many_lines"
    title = "Too many lines"


class LineIsCurrent(Conflict):
    """The line is the current one, which cannot be deleted."""

    code = "line_is_current"
    title = "Line is current"


class LineIsCheckpoint(Conflict):
    """The line is a checkpoint: it is frozen, cannot become current, and can be deleted only by its name."""

    code = "line_is_checkpoint"
    title = "Line is a checkpoint"


_LOCKED = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)


@contextmanager
def busy_if_locked() -> Iterator[None]:
    """Raise ChatBusy if a statement gives up waiting for a line's row, or a deadlock is detected."""
    try:
        yield
    except (*_LOCKED, DBAPIError) as error:
        if isinstance(error, DBAPIError) and not isinstance(driver_error(error), _LOCKED):
            raise
        raise ChatBusy("Another request is changing this chat; try again.") from error
