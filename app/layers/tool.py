"""A tool that a layer offers to the model that plays a character."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from app.bindings.rule import Target
from app.chats.chat_lock import ChatRef
from app.chats.settings import ChatSettings
from app.kit.db import DbSession


def _offer_always(_settings: ChatSettings) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The context of a tool call.

    Attributes:
        db_session: An open unit of work.
        ref: The chat.
        character: The character that calls the tool, if the client names one.
        now: The service's time.
        target: What the client says about the reply that the call belongs to.

    """

    db_session: DbSession
    ref: ChatRef
    character: str | None
    now: datetime
    target: Target


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: The name by which the model calls it.
        description: When to call it; the model reads this text.
        arguments: The model of its arguments; the model reads the fields' descriptions, too.
        example: Valid arguments, which the response to invalid ones contains.
        run: Runs the tool and returns a text for the model that states what was done.
        is_offered: Whether a chat with these settings is offered the tool, if its layer is on.

    """

    name: str
    description: str
    arguments: type[BaseModel]
    example: dict[str, Any]
    run: Callable[[ToolCall, Any], Awaitable[str]]
    is_offered: Callable[[ChatSettings], bool] = _offer_always
