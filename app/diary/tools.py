"""The tool with which a character writes into its diary."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.diary import book
from app.diary.schemas import MAX_ENTRY_CHARS, EntryText
from app.layers.tool import Answer, Tool, ToolCall, wrote


class SaveMemory(BaseModel):
    """The arguments of `save_memory`."""

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


async def _save_memory(call: ToolCall, arguments: SaveMemory) -> Answer:
    saved = await book.save_memory(
        call.db_session,
        call.ref,
        arguments.content,
        tool=SAVE_MEMORY.name,
        character=call.character,
        target=call.target,
        now=call.now,
    )
    text = "It is written in your diary, and you will remember it."
    if saved.is_deleted:
        text = "The user has deleted this entry from your diary, so it is not written again. Do not repeat the call."
    return wrote(f"{text} Go on with the story; do not mention the diary.", saved.made)


SAVE_MEMORY = Tool(
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
)
