"""A tool that a layer offers to the model that plays a character."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, Field

from app.bindings.rule import Target
from app.bindings.service import Made
from app.chats.chat_lock import ChatRef
from app.chats.settings import ChatSettings
from app.kit.db import DbSession
from app.kit.job_context import TextEmbedder

PageNumber = Annotated[int, Field(ge=1, le=10_000, description="Which page of a long answer to read; 1 is the first.")]


def _offer_always(_settings: ChatSettings) -> bool:
    return True


class Answer(NamedTuple):
    """The answer of a tool. The functions `wrote`, `read` and `refused` return one.

    Attributes:
        text: The text for the model, which states what was done.
        outcome: `wrote` if the call wrote something, `read` if it only read, `refused` if it changed nothing because
            something is wrong, `repeated` if it repeats an earlier call.
        written_id: The id of what the call wrote. The binding that connects what was written with a reply has the same
            id (`app/bindings`).

    """

    text: str
    outcome: Literal["wrote", "read", "refused", "repeated"]
    written_id: UUID | None = None


def wrote(text: str, made: Made) -> Answer:
    """Return the answer to a call that wrote something or repeats such a call; `made` is the call's binding."""
    return Answer(text, "repeated" if made.is_retry else "wrote", made.binding_id)


def read(text: str) -> Answer:
    """Return the answer to a call that only reads."""
    return Answer(text, "read")


def refused(text: str) -> Answer:
    """Return the answer to a call that changed nothing; the text says why."""
    return Answer(text, "refused")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The context of a tool call.

    Attributes:
        db_session: An open unit of work.
        ref: The chat.
        character: The character that calls the tool, if the client names one.
        now: The service's time.
        target: What the client says about the reply that the call belongs to.
        embedder: The model that turns texts into vectors; None if none is configured.

    """

    db_session: DbSession
    ref: ChatRef
    character: str | None
    now: datetime
    target: Target
    embedder: TextEmbedder | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: The name by which the model calls it.
        description: When to call it; the model reads this text.
        arguments: The model of its arguments; the model reads the fields' descriptions, too.
        example: Valid arguments, which the response to invalid ones contains.
        run: Runs the tool. An error that it raises is recorded as a refusal if it says what is wrong with the call
            (`REFUSALS` in `app/tools/calls.py`).
        is_offered: Whether a chat with these settings is offered the tool, if its layer is on.

    """

    name: str
    description: str
    arguments: type[BaseModel]
    example: dict[str, Any]
    run: Callable[[ToolCall, Any], Awaitable[Answer]]
    is_offered: Callable[[ChatSettings], bool] = _offer_always
