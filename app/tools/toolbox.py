"""The tools there are. Adding one is adding it to `TOOLS`: its arguments, when to call it, and what it does."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from app.chats.service import ChatRef
from app.diary import service as diary
from app.diary.schemas import MAX_ENTRY_CHARS, EntryText
from app.kit.db import DbSession
from app.tools.errors import ToolNotFound


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Where and when a tool is called.

    Attributes:
        db_session: An open unit of work.
        ref: The chat.
        character: Who calls it, if the caller says so.
        now: The service's time.
        settle_s: How long what follows from it waits for further changes.

    """

    db_session: DbSession
    ref: ChatRef
    character: str | None
    now: datetime
    settle_s: float


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: What the model calls it by.
        description: When to call it, as the model reads it.
        arguments: What it takes; the fields' descriptions are for the model too.
        example: Arguments as they should be, for an answer to wrong ones.
        run: Does it, and says in words for the model what was done.

    """

    name: str
    description: str
    arguments: type[BaseModel]
    example: dict[str, Any]
    run: Callable[[ToolCall, Any], Awaitable[str]]


class SaveMemory(BaseModel):
    """What `save_memory` takes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"content": "Mira gave me her brass compass. I said I would keep it dry."}]},
    )

    content: Annotated[
        EntryText,
        Field(
            description="Your diary entry: one to four sentences in the first person and in your own voice, saying "
            "what happened, with names, and what it means to you. Plain text, without a date or heading; "
            f"at most {MAX_ENTRY_CHARS:,} characters."
        ),
    ]


async def _save_memory(call: ToolCall, arguments: SaveMemory) -> str:
    await diary.save_memory(
        call.db_session,
        call.ref,
        arguments.content,
        character=call.character,
        now=call.now,
        settle_s=call.settle_s,
    )
    return "It is written in your diary, and you will remember it. Go on with the story; do not mention the diary."


TOOLS: Sequence[Tool] = (
    Tool(
        name="save_memory",
        description=(
            "Write an entry into your own diary, so that you still remember it in weeks. Call it as the character you "
            "play, when something has happened that matters to you: a moment that moved you, a promise made, kept or "
            "broken, a secret shared, trust won or lost, a decision, a gift, a change in what you feel for somebody. "
            "Do not call it for small talk, routine or a passing mood, nor for what your diary says already. "
            "The others do not see it."
        ),
        arguments=SaveMemory,
        example={"content": "…"},
        run=_save_memory,
    ),
)


def get_tool(name: str) -> Tool:
    """The tool of that name. Raises ToolNotFound, which lists those there are."""
    found = next((tool for tool in TOOLS if tool.name == name), None)
    if found is None:
        known = ", ".join(tool.name for tool in TOOLS)
        raise ToolNotFound(f"There is no such tool. The tools are: {known}.")
    return found
