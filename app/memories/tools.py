"""The tools with which a character lists the memories of a day, and forgets memories."""

from datetime import date, datetime
from typing import Annotated
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from app.bindings.service import Call, is_retry
from app.chats.chat_lock import lock_head
from app.chats.hashes import identity
from app.kit.tokens import count_tokens
from app.knowledge import reading
from app.knowledge.learning import learn, lock_scopes_of_tool
from app.layers.tool import Answer, PageNumber, Tool, ToolCall, read, refused, wrote
from app.layers.tool_pages import word_page
from app.memories.book import MemoryView, list_memories, say_forgotten, view_chat
from app.memories.days import FIRST_DAY, LAST_DAY, span
from app.memories.memory import Memory
from app.memories.queries import KIND, Choice
from app.memories.remember import NAME

FACT = "fact"
"""The kind of statements that are facts; `memory_log` lists them, too."""


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
    if (not found or found[0].pinned) and await is_retry(db_session, head, made, now=call.now):
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
    view = await view_chat(call.db_session, call.ref, character=call.character)
    day = arguments.day or call.now.astimezone(ZoneInfo(view.time_zone)).date()
    first_at, until = span(day, view.time_zone)
    memories = await list_memories(
        call.db_session, view, Choice(archived=False, first_at=first_at, until=until), now=call.now
    )
    lines = [_word(memory) for memory in sorted(memories, key=lambda one: (one.learnt_at, one.memory_id))]
    lines += await _list_facts(call, view, first_at, until)
    if not lines:
        return read(f"Nothing was learnt on {day}.")
    again = f"`memory_log` with day {day} and page"
    return read(word_page(f"Learnt on {day}:", lines, arguments.page, again=again, count_tokens=count_tokens))


async def _list_facts(call: ToolCall, view: MemoryView, first_at: datetime, until: datetime) -> list[str]:
    held = await reading.list_held(call.db_session, view.viewpoint, FACT)
    learnt = [one for one in held.values() if first_at <= one.learnt_at < until]
    learnt.sort(key=lambda one: (one.learnt_us, one.statement_id))
    return [f"- [fact] {one.key}: {' '.join((one.content or '').split())}" for one in learnt]


def _word(memory: Memory) -> str:
    category = f"[{memory.category}] " if memory.category else ""
    return f"- {category}{' '.join(memory.content.split())} (id {memory.memory_id})"


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
    description="Read what you learnt on a day: memories with their ids, and facts.",
    arguments=MemoryLog,
    example={"day": "2026-05-28"},
    run=_log,
)
