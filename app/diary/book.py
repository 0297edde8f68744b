"""The operations on diaries: people list, read, write, edit and delete entries; characters write them.

A chat that names no characters has an *unnamed diary*, stored under the name "". Requests that name no character use
it, and the service writes its own entries into it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from app.bindings import service as bindings
from app.bindings.rule import Target
from app.bindings.service import Call, Made
from app.chats.characters import (
    Characters,
    accepts,
    current_name,
    find_meant,
    find_sole,
    list_names,
    quote_names,
    word_unknown,
)
from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.hashes import identity
from app.chats.head import Head
from app.chats.models import ChatLine
from app.chats.scheduling import unschedule
from app.chats.service import get_line
from app.chats.settings import effective
from app.diary import queries
from app.diary.bound import put_off, take_over
from app.diary.errors import EntryNotFound
from app.diary.handlers import (
    ENTRY,
    NAME,
    narrative_of,
    note_entries,
    reconcile_fold_work,
    take_number,
)
from app.diary.held import folded_source
from app.diary.models import DiaryEntry
from app.diary.segment import contribute
from app.diary.settings import DiarySettings
from app.diary.shared import queries as shared
from app.diary.shared.merging import Elsewhere, held_of, read_others
from app.kit.db import DbSession, defer
from app.kit.errors import Conflict, Invalid
from app.kit.ids import uuid7
from app.layers.in_prompt import list_sources
from app.messages.range_reads import find_last_not_deleted
from app.narratives import service as narratives
from app.narratives.models import NarrativeVersion

MOST_DIARIES = 32
"""The maximum number of diaries of a chat that names no characters: in such a chat, each new name begins a diary."""


MOST_COUNTED = 1_000
"""The maximum number of folded entries that are counted, so that a request does not take longer as the chat grows."""


class _Written(NamedTuple):
    """A new entry of a person or a tool: the columns that both have."""

    entry_id: UUID
    character: str
    content: str
    origin: str
    at_seq: int
    dated_at: datetime


class Saved(NamedTuple):
    """The binding of a tool call. `is_deleted` is whether the call is a retry and a person has deleted its entry."""

    made: Made
    is_deleted: bool = False


class Listed(NamedTuple):
    """An entry with the id of the reply that it is bound to, if any, and whether contexts contain it."""

    row: DiaryEntry
    message_id: str | None
    in_prompt: bool


@dataclass(frozen=True, slots=True)
class Folded:
    """The folded part of a diary.

    Attributes:
        character: The character whose diary it is.
        version: The latest valid version; None if there is none.
        entries: The number of entries that it covers, counted up to `MOST_COUNTED`.
        first_at, last_at: When the first and the last of them were written.
        in_prompt: Whether contexts contain it.

    """

    character: str
    version: NarrativeVersion | None = None
    entries: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    in_prompt: bool = False


async def list_entries(
    db_session: DbSession,
    ref: ChatRef,
    *,
    line: UUID | None,
    character: str | None,
    after: tuple[int, int] | None,
    limit: int,
) -> list[Listed]:
    """Return a page of entries in story order, of one diary or of all.

    Entries that are hidden because of their reply are included. Raises ChatNotFound, LineNotFound, and Invalid if the
    chat has characters, but neither a character nor an entry under the given name.
    """
    chat = await get_line(db_session, ref, line)
    character = None if character is None else current_name(chat.characters, character)
    entries = await queries.list_entries(
        db_session, (ref.key, chat.line_id), character=character, after=after, limit=limit
    )
    if not entries and after is None and character is not None:
        choose_diary(chat.characters, character, part="query")
    return await _list(db_session, chat, entries)


async def list_shared(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None, character: str | None
) -> list[tuple[str, Elsewhere, bool]]:
    """Return entries of the user's other chats, sorted by time: the newest, and those that the segment `diary` holds.

    Each is a tuple: the character, the entry, and whether contexts contain it. If the caller sees only the chat itself,
    the result is empty. Raises ChatNotFound, LineNotFound, Invalid.
    """
    chat = await get_line(db_session, ref, line)
    if character is not None:
        character = choose_diary(chat.characters, current_name(chat.characters, character), part="query")
    queried = None if ref.only_chat else await shared.read_shared(db_session, (chat.chat_key, chat.line_id))
    sources = sources_of(chat, character, queried)
    names = list_names(chat.characters) if character is None else [character]
    held = {name: held_of(chat.context_cache.get(NAME, {}), name) for name in names}
    rows = orjson.loads(queried)["shared"] if queried else {"rows": ()}
    found = [(name, one) for name in names for one in read_others(rows, name, held[name])]
    found.sort(key=lambda pair: pair[1].key)
    return [(name, one, f"diary:{one.entry.entry_id}" in sources) for name, one in found]


async def get_entry(db_session: DbSession, ref: ChatRef, entry_id: UUID, *, line: UUID | None = None) -> Listed:
    """Return an entry. Raises ChatNotFound, LineNotFound, EntryNotFound."""
    chat = await get_line(db_session, ref, line)
    entry = await queries.find_entry(db_session, (ref.key, chat.line_id), entry_id)
    if entry is None:
        raise _unknown(entry_id)
    (listed,) = await _list(db_session, chat, [entry])
    return listed


async def write_entry(
    db_session: DbSession, ref: ChatRef, content: str, *, character: str | None, now: datetime
) -> UUID:
    """Insert an entry that a person writes, and return its id. Raises ChatNotFound, Invalid, Conflict."""
    head = await lock_head(db_session, ref)
    name = await _choose_diary(db_session, head, character, part="body")
    at_seq = await find_last_not_deleted(db_session, *head.line, 1, head.head_seq) or 0
    return await _insert(db_session, head, _Written(uuid7(), name, content, "person", at_seq, now), {}, now=now)


async def save_memory(
    db_session: DbSession,
    ref: ChatRef,
    content: str,
    *,
    tool: str,
    character: str | None,
    target: Target,
    now: datetime,
) -> Saved:
    """Insert an entry that the character writes, and return its binding. Raises ChatNotFound, Invalid, Conflict.

    The entry is bound to a reply, and hidden until the reply is appended. In a chat without messages, it is shown at
    once, unless the call names the reply. A retry of the call returns the binding of the first entry and changes
    nothing, even if the entry was edited or deleted since.
    """
    head = await lock_head(db_session, ref)
    name = await _choose_diary(db_session, head, character, part="query")
    words = identity("character", content)
    made = await bindings.bind(db_session, head, Call(NAME, tool, name, words, target), now=now)
    if made.is_retry:
        return Saved(made, await queries.find_entry(db_session, head.line, made.binding_id) is None)
    if made.is_open:
        await put_off(db_session, head, name, made.turn_seq, now=now)
    else:
        await take_over(db_session, head, name, made.at_seq)
    values = {"identity": words, "hidden": not made.matches}
    written = _Written(made.binding_id, name, content, "tool", made.at_seq, made.sent_at or now)
    await _insert(db_session, head, written, values, now=now)
    return Saved(made)


async def edit_entry(
    db_session: DbSession, ref: ChatRef, entry_id: UUID, given: Mapping[str, Any], *, now: datetime
) -> None:
    """Change the fields `content` and `kept` of an entry, if `given` has them; None resets `kept`.

    No model rewrites a text that a person wrote. An entry with such a text does not depend on a reply, and neither does
    an entry that is kept.

    Raises ChatNotFound and EntryNotFound. Raises Conflict if `given` has `kept`, but the service wrote the current
    text. Also raises Conflict if `kept` is reset, but the entry has no reply on which it could depend again.
    """
    head, entry = await _lock_entry(db_session, ref, entry_id)
    values: dict[str, Any] = {}
    if "content" in given:
        edited = entry.edited or entry.origin != "person"
        values |= {"content": given["content"], "origin": "person", "edited": edited, "hidden": False}
        values |= {"source_hash": entry.current_hash}
    if "kept" in given:
        values |= await _keep(db_session, head, entry, given)
    await _change(db_session, head, entry, values, now=now)


async def delete_entry(db_session: DbSession, ref: ChatRef, entry_id: UUID, *, now: datetime) -> None:
    """Soft-delete an entry. Raises ChatNotFound, EntryNotFound."""
    head, entry = await _lock_entry(db_session, ref, entry_id)
    await _change(db_session, head, entry, {"deleted_at": now}, now=now)


async def read_folded(db_session: DbSession, ref: ChatRef, *, line: UUID | None, character: str | None) -> Folded:
    """Return the latest valid version of the folded part. Raises ChatNotFound, LineNotFound, Invalid."""
    chat = await get_line(db_session, ref, line)
    key = (ref.key, chat.line_id)
    name = None if character is None else current_name(chat.characters, character)
    if name is None or name not in await queries.list_names(db_session, key):
        name = choose_diary(chat.characters, name, part="query")
    link = (await narratives.read_chain(db_session, key, narrative_of(name))).latest_valid()
    if link is None:
        return Folded(name)
    version = await narratives.read_version(db_session, key, narrative_of(name), link.version)
    counted = await queries.count_folded(db_session, key, name, link.last_unit, at_most=MOST_COUNTED)
    return Folded(
        name, version, *counted, in_prompt=folded_source(link.version) in await find_sources(db_session, chat, name)
    )


async def find_sources(db_session: DbSession, chat: ChatLine, character: str | None = None) -> frozenset[str]:
    """Return the sources that contexts contain, of one diary or of all diaries.

    The source of an entry is `diary:<entry_id>`, that of a folded part `diary:folded:<version>`. Each diary is looked
    up in its character's prompt. The unnamed diary is looked up in the prompt of a request without a character.
    """
    queried = None
    if DiarySettings.of(effective(chat.settings)).is_shared:
        queried = await shared.read_shared(db_session, (chat.chat_key, chat.line_id))
    return sources_of(chat, character, queried)


def sources_of(chat: ChatLine, character: str | None = None, queried: str | None = None) -> frozenset[str]:
    """Return what `find_sources` returns; `queried` is the result of `shared.read_shared`, or None."""
    cast = chat.characters
    cached = chat.context_cache.get(NAME, {}).get("characters", {})
    names = {*cached, *(list_names(cast) if queried else ())} if character is None else [character]
    prompts = {name or find_sole(cast) for name in names if not name or accepts(cast, name)}
    return list_sources(contribute, chat, NAME, characters=prompts, queried=queried)


def choose_diary(characters: Characters, named: str | None, *, part: str) -> str:
    """Return the name of the character whose diary a request refers to; "" for the unnamed diary.

    A request that names no character means the chat's sole character. If the chat names no characters, each name has a
    diary of its own.

    Args:
        characters: The characters of the chat.
        named: The name in the request, or None.
        part: The part of the request that has the name: `body` or `query`.

    Raises Invalid if the chat has characters, but none of that name. Also raises Invalid if the request names no
    character, and not exactly one of the chat's characters is active.
    """
    if named is not None and not accepts(characters, named):
        raise _unclear(part, word_unknown(characters))
    meant = find_meant(characters, named)
    if meant is None and characters:
        raise _unclear(part, f"is required to choose a diary: {quote_names(characters)}")
    return meant or ""


async def _list(db_session: DbSession, chat: ChatLine, entries: Sequence[DiaryEntry]) -> list[Listed]:
    """Return entries with the replies that they are bound to, and whether contexts contain them."""
    sources = await find_sources(db_session, chat)
    ids = [entry.entry_id for entry in entries if entry.identity is not None]
    positions = await bindings.list_positions(db_session, (chat.chat_key, chat.line_id), ids)
    return [
        Listed(
            entry,
            positions[entry.entry_id].message_id if entry.entry_id in positions else None,
            f"diary:{entry.entry_id}" in sources,
        )
        for entry in entries
    ]


async def _choose_diary(db_session: DbSession, head: Head, character: str | None, *, part: str) -> str:
    """Return the name of the diary to write in. Raises Invalid, and Conflict beyond `MOST_DIARIES`."""
    line = head.line
    cast = (await queries.read_cast(db_session, line)).characters
    name = choose_diary(cast, character, part=part)
    if name and not cast:
        names = await queries.list_names(db_session, line)
        if name not in names and len(names) >= MOST_DIARIES:
            raise Conflict(
                f"The chat names no characters and already has {MOST_DIARIES} diaries. Name its characters to add more."
            )
    return name


async def _insert(
    db_session: DbSession, head: Head, written: _Written, more: Mapping[str, Any], *, now: datetime
) -> UUID:
    """Insert a new entry and return its id; `more` are further columns."""
    values = {**written._asdict(), **more, "number": take_number(head), "created_at": now}
    await queries.insert_entry(db_session, head.line, values)
    await reconcile_fold_work(db_session, head, written.character, now=now, settle_s=db_session.settle_s, again=False)
    defer(db_session, LayerChanged(head, NAME))
    return written.entry_id


async def _keep(db_session: DbSession, head: Head, entry: DiaryEntry, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that change when a person keeps an entry, or stops keeping it. Raises Conflict."""
    if entry.origin == "model":
        raise Conflict("Only an entry that a tool wrote depends on a reply, so only such an entry can be kept.")
    kept = bool(given["kept"])
    if kept or entry.origin == "person" or "content" in given:
        return {"kept": kept, "hidden": False}
    position = (await bindings.list_positions(db_session, head.line, [entry.entry_id])).get(entry.entry_id)
    if position is None and entry.kept:
        raise Conflict(
            "The entry cannot depend on its reply again: the reply never came, or is no longer on this line. "
            "Delete the entry if it is not to be kept."
        )
    return {"kept": kept, "hidden": position is not None and not position.matches}


async def _change(
    db_session: DbSession, head: Head, entry: DiaryEntry, values: dict[str, Any], *, now: datetime
) -> None:
    """Apply a person's change to an entry, cancel work that would rewrite it, and update the folds that cover it."""
    line = head.line
    await queries.update_entry(db_session, line, entry.entry_id, values)
    keys = [f"{ENTRY}{entry.entry_id}"]
    await unschedule(db_session, head, NAME, keys)
    await note_entries(db_session, head, entry.character, [entry.number], now=now, settle_s=db_session.settle_s)
    defer(db_session, LayerChanged(head, NAME))


async def _lock_entry(db_session: DbSession, ref: ChatRef, entry_id: UUID) -> tuple[Head, DiaryEntry]:
    head = await lock_head(db_session, ref)
    entry = await queries.find_entry(db_session, head.line, entry_id)
    if entry is None:
        raise _unknown(entry_id)
    return head, entry


def _unknown(entry_id: UUID) -> EntryNotFound:
    return EntryNotFound(f"There is no entry {str(entry_id)!r} in the diaries of this chat.")


def _unclear(part: str, message: str) -> Invalid:
    return Invalid(f"character: {message}", errors=[{"loc": [part, "character"], "msg": message}])
