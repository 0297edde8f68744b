"""The operations on memories: write, change and forget them for a person, and read them.

Each text of a memory is a statement (`app/knowledge/models.py`) whose key is the id of the memory.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.service import get_line
from app.chats.settings import effective
from app.kit.db import DbSession, defer
from app.kit.ids import uuid7
from app.knowledge import reading
from app.knowledge.reading import Value, Viewpoint
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Said, lock_scope, raise_revision, set_by_person
from app.memories import compare_queries, queries
from app.memories.errors import MemoryNotFound, MemoryOfCharacter
from app.memories.known_memories import hash_content, hash_forgotten, keeping_of
from app.memories.memory import Memory
from app.memories.queries import KIND, Choice
from app.memories.remember import NAME
from app.memories.settings import MemorySettings
from app.messages.reads import find_newest_sent_at
from app.sessions.book import find_ids

_CHOSEN = ("category", "importance", "tags")
"""The fields that a newly learnt text does not change once a person has set them."""


class MemoryView(NamedTuple):
    """The scope or the line from which memories are read, and the settings that apply.

    Attributes:
        viewpoint: The scope, or the line of a chat.
        settings: The settings of the chat; the defaults for a scope that is not read from a chat.
        time_zone: The time zone of the chat; UTC for a scope that is not read from a chat.
        newest_at: The time of the line's newest message that can be sent (not hidden, blank or a thought); None if the
            line has none, and for a scope that is not read from a chat.

    """

    viewpoint: Viewpoint
    settings: MemorySettings
    time_zone: str
    newest_at: datetime | None = None

    def find_age_time(self, now: datetime) -> datetime:
        """Return the time at which the ages of memories are measured: that of the newest message, never after `now`.

        So an imported conversation of last year has not forgotten everything. Without a message it is `now`, the
        service's time.
        """
        return min(self.newest_at, now) if self.newest_at else now

    @classmethod
    def of_scope(cls, scope: ScopeKey) -> "MemoryView":
        """Return the view of one scope."""
        return cls(Viewpoint.of_scope(scope), MemorySettings(), "UTC")


async def view_chat(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None = None, character: str | None = None
) -> MemoryView:
    """Return the view of a line, the current one by default. Raises ChatNotFound, LineNotFound, Invalid.

    `character` is the character whose own memories (those of the user with this character) the view includes; by
    default, the only character of the chat.
    """
    chat = await get_line(db_session, ref, line)
    viewpoint = await reading.view_chat(db_session, ref, line=line, character=character)
    newest_at = await find_newest_sent_at(db_session, ref.key, chat.line_id)
    return MemoryView(viewpoint, MemorySettings.of(effective(chat.settings)), chat.time_zone, newest_at)


async def list_memories(
    db_session: DbSession, view: MemoryView, choice: Choice, *, now: datetime, of_all: bool = False
) -> list[Memory]:
    """Return the memories of `choice` that the view's character sees, the strongest first.

    With `of_all`, return those that at least one of the chat's characters sees.
    """
    viewpoint, keeping = view.viewpoint, keeping_of(view.settings, view.find_age_time(now))
    if viewpoint.line is None:
        return await queries.list_of_scope(db_session, viewpoint.scope, keeping, choice)
    return await queries.list_of_chat(
        db_session,
        viewpoint.line,
        keeping,
        choice,
        character=viewpoint.character,
        of_all=of_all,
        only_chat=viewpoint.only_chat,
    )


async def list_strongest(db_session: DbSession, view: MemoryView, limit: int, *, now: datetime) -> list[Memory]:
    """Return at most `limit` of the memories that are not in the archive, the strongest first."""
    return await list_memories(db_session, view, Choice(archived=False, limit=limit), now=now)


async def list_all(db_session: DbSession, view: MemoryView, *, now: datetime) -> list[Memory]:
    """Return all memories that the view's character sees, also those of the archive."""
    return await list_memories(db_session, view, Choice(), now=now)


async def get_memory(db_session: DbSession, view: MemoryView, memory_id: UUID, *, now: datetime) -> Memory:
    """Return a memory, of whichever character. Raises MemoryNotFound."""
    found = await list_memories(db_session, view, Choice(memory_id=memory_id), now=now, of_all=True)
    if not found:
        raise MemoryNotFound(f"There is no memory {str(memory_id)!r}.")
    return found[0]


async def list_texts(db_session: DbSession, view: MemoryView, memory_id: UUID) -> list[Value]:
    """Return the texts that a memory has and had in each scope of the view, newest first. Raises MemoryNotFound."""
    values = await reading.list_values(db_session, view.viewpoint, KIND, str(memory_id), of_all=True)
    if not values:
        raise MemoryNotFound(f"There never was a memory {str(memory_id)!r}.")
    return values


async def write_in_chat(db_session: DbSession, ref: ChatRef, fields: Mapping[str, Any], *, now: datetime) -> UUID:
    """Write a memory of a chat for a person, and return its id. Raises ChatNotFound."""
    head = await lock_head(db_session, ref)
    memory_id = await write_in_scope(db_session, ScopeKey.of_chat(ref.tenant, ref.key), fields, now=now)
    defer(db_session, LayerChanged(head, NAME))
    return memory_id


async def write_in_scope(db_session: DbSession, scope: ScopeKey, fields: Mapping[str, Any], *, now: datetime) -> UUID:
    """Write a memory of a scope for a person, and return its id. `fields` are the columns of a statement."""
    memory_id = uuid7()
    await _set(db_session, scope, memory_id, fields, edited=False, now=now)
    return memory_id


async def change_in_chat(
    db_session: DbSession, ref: ChatRef, memory_id: UUID, changed: Mapping[str, Any], *, now: datetime
) -> None:
    """Change a memory of a chat for a person. A memory of a wider scope is changed for this chat alone.

    Raises ChatNotFound, MemoryNotFound, MemoryOfCharacter.
    """
    head = await lock_head(db_session, ref)
    await change_in_scope(db_session, await view_chat(db_session, ref), memory_id, changed, now=now)
    defer(db_session, LayerChanged(head, NAME))


async def change_in_scope(
    db_session: DbSession, view: MemoryView, memory_id: UUID, changed: Mapping[str, Any], *, now: datetime
) -> None:
    """Change a memory for a person, in the scope of the view. Raises MemoryNotFound, MemoryOfCharacter.

    A new text is a new statement, which is live on all lines, and the former texts are not learnt again. The other
    fields are changed in all statements of the memory in the scope. If the text does not change, no statement is
    added: a learnt text is live only on some lines, but a statement of a person would be live on all. But if the
    memory belongs to a wider scope, the changed memory is always stored as a new statement in the scope of the
    view. This statement has the choices (`Memory.choices`) that persons made in the wider scope, except for the
    fields in `changed`.
    """
    scope = view.viewpoint.scope
    await lock_scope(db_session, scope)
    memory = await get_memory(db_session, view, memory_id, now=now)
    is_own = memory.rank == scope.rank
    if not is_own and memory.character not in (None, view.viewpoint.character):
        raise MemoryOfCharacter(
            f"The memory is one of the user with “{memory.character}”. The other characters of the chat would see a "
            "changed text, so change it in its own scope."
        )
    fields = {
        "content": memory.content,
        "category": memory.category,
        "importance": memory.importance,
        "tags": list(memory.tags),
        **memory.choices,
        "chosen": sorted({*memory.chosen, *(name for name in _CHOSEN if name in changed)}),
        **changed,
    }
    if is_own:
        await queries.change(db_session, scope, memory_id, fields)
        raise_revision(db_session, scope)
    if not is_own or fields["content"] != memory.content:
        edited = memory.edited or memory.origin != "person"
        texts = {memory.content, *await queries.list_contents(db_session, scope, memory_id)}
        replaced = texts - {fields["content"]} if is_own else texts
        fields["forgotten"] = hash_forgotten(replaced)
        await _set(db_session, scope, memory_id, fields, edited=edited, now=now)


async def forget_in_chat(db_session: DbSession, ref: ChatRef, memory_id: UUID, *, now: datetime) -> None:
    """Forget a memory of a chat for a person, for good. A memory of a wider scope is forgotten in this chat alone.

    Raises ChatNotFound, MemoryNotFound.
    """
    head = await lock_head(db_session, ref)
    await forget_in_scope(db_session, await view_chat(db_session, ref), memory_id, now=now)
    defer(db_session, LayerChanged(head, NAME))


async def forget_in_scope(db_session: DbSession, view: MemoryView, memory_id: UUID, *, now: datetime) -> None:
    """Forget a memory for a person, in the scope of the view and for good. Raises MemoryNotFound."""
    await lock_scope(db_session, view.viewpoint.scope)
    memory = await get_memory(db_session, view, memory_id, now=now)
    said = await say_forgotten(db_session, view.viewpoint.scope, memory)
    await set_by_person(db_session, view.viewpoint.scope, said, edited=False, now=now, bounded=False)


async def say_forgotten(db_session: DbSession, scope: ScopeKey, memory: Memory) -> Said:
    """Return the statement that forgets a memory in a scope, with hashes of its text and its former texts there."""
    texts = {memory.content, *await queries.list_contents(db_session, scope, memory.memory_id)}
    return Said(KIND, str(memory.memory_id), None, 0, more={"forgotten": hash_forgotten(texts)})


async def is_forgotten(db_session: DbSession, view: MemoryView, content: str) -> bool:
    """Return whether a text was forgotten in a scope that a line sees, or replaced by a person in its chat."""
    scope, line, character = view.viewpoint.scope, view.viewpoint.line, view.viewpoint.character
    if line is None:
        return False
    forgotten = await compare_queries.list_forgotten(db_session, scope, line, character=character)
    hashed = hash_content(content)
    return hashed in forgotten.hashes | forgotten.wider or any(
        hash_content(text) == hashed for _, text in forgotten.texts
    )


async def list_sources(db_session: DbSession, view: MemoryView, memories: Sequence[Memory]) -> dict[UUID, list[str]]:
    """Return the sources of each memory, by the statement's id: messages (`message:<id>`) of the line that is read."""
    return await reading.list_sources_of(db_session, view.viewpoint, [one.statement_id for one in memories])


async def list_by_id(
    db_session: DbSession, view: MemoryView, memory_ids: Collection[UUID], *, now: datetime
) -> list[Memory]:
    """Return those of these memories that are not in the archive, the strongest first."""
    held = await list_memories(db_session, view, Choice(archived=False), now=now) if memory_ids else []
    return [memory for memory in held if memory.memory_id in memory_ids]


async def list_sessions(db_session: DbSession, view: MemoryView, memories: Sequence[Memory]) -> dict[UUID, UUID | None]:
    """Return the session of the newest message that taught each memory, by the statement's id.

    A memory that no message taught has none. A memory of a wider scope can have a session of another chat. If several
    other chats taught it, the session is that of the message with the highest seq.
    """
    positions = await reading.list_positions(db_session, view.viewpoint, [one.statement_id for one in memories])
    found = await find_ids(db_session, list(positions.values()))
    return dict(zip(positions, found, strict=True))


async def _set(
    db_session: DbSession, scope: ScopeKey, memory_id: UUID, fields: Mapping[str, Any], *, edited: bool, now: datetime
) -> None:
    more = {name: value for name, value in fields.items() if name != "content"}
    said = Said(KIND, str(memory_id), fields["content"], 0, more=more)
    await set_by_person(db_session, scope, said, edited=edited, now=now, bounded=False)
