"""The tools with which a character lists the memories of a day, and forgets memories."""

from datetime import date
from typing import Annotated
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from app.bindings.service import Call, find_retry
from app.chats.chat_lock import lock_head
from app.chats.hashes import identity
from app.kit.tokens import count_tokens
from app.knowledge import reading
from app.knowledge.learning import learn, lock_scopes_of_tool
from app.layers.tool import Answer, PageNumber, Tool, ToolCall, read, refused, wrote
from app.layers.tool_pages import word_page
from app.memories.book import list_memories, say_forgotten, view_chat
from app.memories.days import FIRST_DAY, LAST_DAY, span
from app.memories.log_queries import FACT, Learnt, list_learnt
from app.memories.queries import KIND, Choice
from app.memories.remember import NAME

_CHANGED = "it has changed since"
"""In the log of a day, instead of the id of a memory whose text has changed: `forget` would forget the new text."""

_GO_ON = "Go on with the story; do not mention it."


class Forget(BaseModel):
    """The arguments of `forget`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"memory_id": "01a20751-31a1-7229-9891-97a89e4c4c1a"}]}
    )

    memory_id: Annotated[UUID, Field(description="The id of the memory, as `memory_log` shows it.")]


class MemoryLog(BaseModel):
    """The arguments of `memory_log`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"day": "2026-05-28"}, {}, {"page": 2}]})

    day: Annotated[
        date | None, Field(ge=FIRST_DAY, le=LAST_DAY, description="The day, such as `2026-05-28`; null is today.")
    ] = None
    page: PageNumber = 1


async def _forget(call: ToolCall, arguments: Forget) -> Answer:
    """Forget a memory that the character sees. It does not see what the user's other characters know."""
    db_session = call.db_session
    head = await lock_head(db_session, call.ref)
    view = await view_chat(db_session, call.ref, character=call.character)
    learning = await lock_scopes_of_tool(db_session, call.ref, view.viewpoint.character)
    words = identity("memory", str(arguments.memory_id))
    made = Call(NAME, FORGET.name, view.viewpoint.character or "", words, call.target)
    found = await list_memories(db_session, view, Choice(memory_id=arguments.memory_id), now=call.now)
    if (not found or found[0].pinned) and await find_retry(db_session, head, made, now=call.now):
        return Answer(f"It is forgotten. {_GO_ON}", "repeated")
    if not found:
        return refused("There is no memory with this id, so nothing has changed. `memory_log` shows the ids.")
    if found[0].pinned:
        return refused("The user pinned this memory, so it cannot be forgotten. Nothing has changed.")
    deciding = await reading.find_deciding(db_session, view.viewpoint, KIND, str(arguments.memory_id))
    scope = learning.choose_scope(deciding)
    said = await say_forgotten(db_session, scope, found[0])
    bound = await learn(db_session, head, scope, made, said, now=call.now, bounded=False)
    return wrote(f"It is forgotten: “{found[0].content}” {_GO_ON}", bound)


async def _log(call: ToolCall, arguments: MemoryLog) -> Answer:
    """List what was learnt on a day, with the values of that day, also if they were replaced or have faded since."""
    view = await view_chat(call.db_session, call.ref, character=call.character)
    day = arguments.day or call.now.astimezone(ZoneInfo(view.time_zone)).date()
    first_at, until = span(day, view.time_zone)
    lines = [_word(one) for one in await list_learnt(call.db_session, view.viewpoint, first_at, until)]
    if not lines:
        return read(f"Nothing was learnt on {day}.")
    again = f"`memory_log` with day {day} and page"
    return read(word_page(f"Learnt on {day}:", lines, arguments.page, again=again, count_tokens=count_tokens))


def _word(learnt: Learnt) -> str:
    content = " ".join(learnt.content.split())
    if learnt.kind == FACT:
        return f"- [fact] {learnt.key}: {content}{'' if learnt.holds else f' ({_CHANGED})'}"
    category = f"[{learnt.category}] " if learnt.category else ""
    return f"- {category}{content} ({f'id {learnt.key}' if learnt.holds else _CHANGED})"


FORGET = Tool(
    name="forget",
    description=(
        "Forget a memory that is wrong, or that the other asked you to forget. For a fact, call `forget_fact`. Do not "
        "call it for what is merely old."
    ),
    arguments=Forget,
    example={"memory_id": "01a20751-31a1-7229-9891-97a89e4c4c1a"},
    run=_forget,
)
MEMORY_LOG = Tool(
    name="memory_log",
    description=(
        "Read what you learnt on a day: memories with their ids, and facts, with the values of that day. They may have "
        "changed since."
    ),
    arguments=MemoryLog,
    example={"day": "2026-05-28"},
    run=_log,
)
