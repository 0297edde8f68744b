"""Makes the changes of a person in a chat: the same operations as those of the HTTP routes, with the same checks."""

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from app.chats.chat_lock import ChatRef
from app.diary import book as diary
from app.diary.schemas import EntryIn, EntryPatch
from app.facts import book as facts
from app.facts.schemas import FactIn, FactKey
from app.kit.db import DbSession
from app.kit.errors import Conflict, Invalid, NotFound
from app.kit.validation_errors import error_location, word_error
from app.memories import book as memories
from app.memories.schemas import MemoryIn, MemoryPatch
from app.memos import book as memos
from app.memos.schemas import MemoIn, MemoPatch
from app.narratives.schemas import NarrativeIn
from app.scenes import book as scenes
from app.scenes import recap
from app.scenes.schemas import ScenePatch
from app.summary import book as summary
from app.summary.schemas import SummaryIn
from app.vault.items import Item
from app.vault.structure import NEVER_REMOVED

_KEY: TypeAdapter[str] = TypeAdapter(FactKey)


class RefusedError(Exception):
    """A change cannot be made; the message says why, without the name of the item."""


@contextmanager
def _refused_if_wrong() -> Any:
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(str(part) for part in error_location(first))
        raise RefusedError(f"{location or 'key'}: {word_error(first)}") from None
    except (Conflict, Invalid, NotFound) as error:  # none of them is raised after a write
        raise RefusedError(error.detail.rstrip(".")) from None


@dataclass(frozen=True, slots=True)
class Verbs:
    """The operations on one chat, whose current line the transaction has locked. Each raises RefusedError."""

    db_session: DbSession
    ref: ChatRef
    now: datetime

    async def edit(self, item: Item, name: str, parts: frozenset[int]) -> None:
        """Change parts of an item; `name` is its id, or the key of a fact."""
        with _refused_if_wrong():
            match item.kind:
                case "memory":
                    given = _given(MemoryPatch, _fields_of_memory(item, parts))
                    await memories.change_in_chat(self.db_session, self.ref, UUID(name), given, now=self.now)
                case "fact":
                    value = FactIn(value=item.text).value
                    await facts.set_in_chat(self.db_session, self.ref, name, value, now=self.now)
                case "memo":
                    given = _given(MemoPatch, {"text": item.text})
                    await memos.edit_memo(self.db_session, self.ref, UUID(name), given)
                case "summary" | "recap":
                    await self._write_narrative(item)
                case "scene":
                    given = _given(ScenePatch, _fields_of_scene(item, parts))
                    await scenes.edit_scene(self.db_session, self.ref, UUID(name), given, now=self.now)
                case _:
                    given = _given(EntryPatch, {"content": item.text})
                    await diary.edit_entry(self.db_session, self.ref, UUID(name), given, now=self.now)
            await self.db_session.run_deferred()

    async def remove(self, kind: str, name: str) -> None:
        """Delete an item."""
        if kind in NEVER_REMOVED:
            raise RefusedError(NEVER_REMOVED[kind])
        with _refused_if_wrong():
            match kind:
                case "memory":
                    await memories.forget_in_chat(self.db_session, self.ref, UUID(name), now=self.now)
                case "fact":
                    await facts.delete_in_chat(self.db_session, self.ref, name, now=self.now)
                case "memo":
                    await memos.delete_memo(self.db_session, self.ref, UUID(name), now=self.now)
                case _:
                    await diary.delete_entry(self.db_session, self.ref, UUID(name), now=self.now)
            await self.db_session.run_deferred()

    async def add(self, item: Item, *, character: str | None = None, after_seq: int | None = None) -> None:
        """Write an item; `character` is that of a diary entry, and `after_seq` the position of a memo."""
        with _refused_if_wrong():
            match item.kind:
                case "memory":
                    await self._add_memory(item)
                case "fact":
                    key, value = _KEY.validate_python(item.name), FactIn(value=item.text).value
                    await facts.set_in_chat(self.db_session, self.ref, key, value, now=self.now)
                case "memo":
                    text = MemoIn(text=item.text, after_seq=after_seq).text
                    await memos.write_person_memo(
                        self.db_session, self.ref, text=text, after_seq=after_seq, now=self.now
                    )
                case "summary" | "recap":
                    await self._write_narrative(item)
                case "scene":
                    raise RefusedError("a scene begins with a break, which PUT …/scenes/breaks/{seq} sets")
                case _:
                    entry = EntryIn(content=item.text, character=character)
                    await diary.write_entry(
                        self.db_session, self.ref, entry.content, character=entry.character, now=self.now
                    )
            await self.db_session.run_deferred()

    async def _write_narrative(self, item: Item) -> None:
        """Replace the running recap or the summary; later versions of the summary then keep the text word for word."""
        if item.kind == "summary":
            given = SummaryIn(text=item.text)
            await summary.write_summary(self.db_session, self.ref, given.text, keep=given.keep, now=self.now)
        else:
            await recap.write_recap(self.db_session, self.ref, NarrativeIn(text=item.text).text, now=self.now)

    async def _add_memory(self, item: Item) -> None:
        fields = _fields_of_memory(item, frozenset({0, 1}))
        given = MemoryIn.model_validate(fields).model_dump()
        memory_id = await memories.write_in_chat(self.db_session, self.ref, given, now=self.now)
        if item.parts[2]:
            await self.db_session.run_deferred()
            await memories.change_in_chat(self.db_session, self.ref, memory_id, {"archived": True}, now=self.now)


def _fields_of_memory(item: Item, parts: frozenset[int]) -> dict[str, Any]:
    """Return the fields of a memory that these parts of it contain."""
    fields: dict[str, Any] = {"content": item.text} if 0 in parts else {}
    if 1 in parts and isinstance(item.parts[1], tuple):
        category, tags = item.parts[1]
        fields |= {"category": category, "tags": list(tags)}
    return fields | ({"archived": item.parts[2]} if 2 in parts else {})


def _fields_of_scene(item: Item, parts: frozenset[int]) -> dict[str, Any]:
    """Return the fields of a scene that these parts of it contain."""
    return ({"recap": item.text} if 0 in parts else {}) | ({"title": item.parts[1]} if 1 in parts else {})


def _given(model: type[MemoryPatch | MemoPatch | EntryPatch | ScenePatch], fields: Mapping[str, Any]) -> dict[str, Any]:
    return model.model_validate(fields).given()
