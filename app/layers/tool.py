"""A tool that a layer offers to the model that plays a character."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from app.chats.service import ChatRef
from app.kit.db import DbSession


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The circumstances of a call.

    Attributes:
        db_session: An open unit of work.
        ref: The chat.
        character: The character that calls, if the caller names one.
        now: The service's time.

    """

    db_session: DbSession
    ref: ChatRef
    character: str | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: What the model calls it by.
        description: When to call it, as the model reads it.
        arguments: What it takes; the fields' descriptions are for the model too.
        example: Valid arguments, shown in the answer to wrong ones.
        run: Runs it and returns what was done, in words for the model.

    """

    name: str
    description: str
    arguments: type[BaseModel]
    example: dict[str, Any]
    run: Callable[[ToolCall, Any], Awaitable[str]]
