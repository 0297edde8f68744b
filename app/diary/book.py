"""The operations on diaries: people and characters list, read, write, edit and delete entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from app.chats.characters import Characters, accepts, find_sole, list_active, list_names
from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.hashes import identity
from app.chats.head import Head
from app.chats.models import ChatLine
from app.chats.scheduling import unschedule
from app.chats.service import get_line
from app.diary import change_queries, queries
from app.diary.choice import choose_diary
from app.diary.errors import EntryNotFound
from app.diary.handlers import (
    ENTRY,
    NAME,
    WRITE,
    begin_period,
    folded_source,
    narrative_of,
    note_entries,
    reconcile_fold_work,
    take_number,
)
from app.diary.models import DiaryEntry
from app.diary.segment import contribute
from app.kit.db import DbSession, defer
from app.kit.errors import Conflict
from app.kit.ids import uuid7
from app.layers.in_prompt import list_sources
from app.narratives import service as narratives
from app.narratives.models import NarrativeVersion

RETRY_WINDOW_S = 600
"""For this long, the same text of a character at the same message is a retry of its tool call."""


MOST_DIARIES = 32
"""The most diaries of a chat that names no characters: there, every new name in a request begins another diary."""


MOST_COUNTED = 1_000
"""The most folded entries that are counted, so that a request does not take longer as the chat grows."""


@dataclass(frozen=True, slots=True)
class Folded:
    """The folded part of a diary.

    Attributes:
        character: The character whose diary it is.
        version: The latest valid version; None before the first.
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
) -> tuple[Sequence[DiaryEntry], frozenset[str]]:
    """Return a page of entries in story order, of one diary or of all, and the sources in the prompts.

    Raises ChatNotFound, LineNotFound, and Invalid for a character that has no entries and is not one of the chat's.
    """
    chat = await get_line(db_session, ref, line)
    entries = await queries.list_entries(
        db_session, (ref.key, chat.line_id), character=character, after=after, limit=limit
    )
    if not entries and after is None and character is not None:
        choose_diary(chat.characters, character, part="query")
    return entries, sources_of(chat)


async def get_entry(
    db_session: DbSession, ref: ChatRef, entry_id: UUID, *, line: UUID | None = None
) -> tuple[DiaryEntry, frozenset[str]]:
    """Return an entry and the sources in the prompts. Raises ChatNotFound, LineNotFound, EntryNotFound."""
    chat = await get_line(db_session, ref, line)
    entry = await queries.find_entry(db_session, (ref.key, chat.line_id), entry_id)
    if entry is None:
        raise _unknown(entry_id)
    return entry, sources_of(chat)


async def write_entry(
    db_session: DbSession, ref: ChatRef, content: str, *, character: str | None, now: datetime
) -> UUID:
    """Insert an entry that a person writes, and return its id. Raises ChatNotFound, Invalid, Conflict."""
    head = await lock_head(db_session, ref)
    name, _ = await _choose_diary(db_session, head, character, part="body")
    return await _write(db_session, head, name, content, words=None, now=now)


async def save_memory(
    db_session: DbSession, ref: ChatRef, content: str, *, character: str | None, now: datetime
) -> UUID:
    """Insert an entry that the character writes, and return its id. Raises ChatNotFound, Invalid, Conflict.

    The same text at the same message, within `RETRY_WINDOW_S`, is a retry: it returns the id of the first entry and
    changes nothing, even if that entry was edited or deleted since then.
    """
    head = await lock_head(db_session, ref)
    name, cast = await _choose_diary(db_session, head, character, part="query")
    words = identity("character", content)
    since = now - timedelta(seconds=RETRY_WINDOW_S)
    at_seq, _ = await queries.find_newest_message(db_session, head.line)
    known = await queries.find_repeated(
        db_session, head.line, character=name, identity=words, at_seq=at_seq, since=since
    )
    if known is not None:
        return known.entry_id
    await _forget_writing(db_session, head, name, at_seq)
    if set(list_names(list_active(cast))) <= {name}:
        begin_period(head)  # with several characters, the others' entries are still due
    return await _write(db_session, head, name, content, words=words, now=now)


async def edit_entry(db_session: DbSession, ref: ChatRef, entry_id: UUID, content: str, *, now: datetime) -> None:
    """Replace the text of an entry; no model rewrites it afterwards. Raises ChatNotFound, EntryNotFound."""
    head, entry = await _lock_entry(db_session, ref, entry_id)
    edited = entry.edited or entry.origin != "person"
    values = {"content": content, "origin": "person", "edited": edited, "source_hash": entry.current_hash}
    await _change(db_session, head, entry, values, now=now)


async def delete_entry(db_session: DbSession, ref: ChatRef, entry_id: UUID, *, now: datetime) -> None:
    """Soft-delete an entry. Raises ChatNotFound, EntryNotFound."""
    head, entry = await _lock_entry(db_session, ref, entry_id)
    await _change(db_session, head, entry, {"deleted_at": now}, now=now)


async def read_folded(db_session: DbSession, ref: ChatRef, *, line: UUID | None, character: str | None) -> Folded:
    """Return the latest valid version of the folded part. Raises ChatNotFound, LineNotFound, Invalid."""
    chat = await get_line(db_session, ref, line)
    place = (ref.key, chat.line_id)
    name = character
    if name is None or name not in await queries.list_names(db_session, place):
        name = choose_diary(chat.characters, character, part="query")
    link = (await narratives.read_chain(db_session, place, narrative_of(name))).latest_valid()
    if link is None:
        return Folded(name)
    version = await narratives.read_version(db_session, place, narrative_of(name), link.version)
    counted = await queries.count_folded(db_session, place, name, link.last_unit, at_most=MOST_COUNTED)
    return Folded(name, version, *counted, in_prompt=folded_source(link.version) in sources_of(chat, name))


def sources_of(chat: ChatLine, character: str | None = None) -> frozenset[str]:
    """Return the sources that contexts contain of one diary or of all: `diary:<entry_id>`, `diary:folded:<version>`.

    Each diary is looked up in its character's prompt, the unnamed diary in the default prompt.
    """
    cast = chat.characters
    names = chat.context_cache.get(NAME, {}).get("characters", {}) if character is None else [character]
    prompts = {name or find_sole(cast) for name in names if not name or accepts(cast, name)}
    return list_sources(contribute, chat, NAME, characters=prompts)


async def _choose_diary(
    db_session: DbSession, head: Head, character: str | None, *, part: str
) -> tuple[str, Characters]:
    """Return the name of the diary to write in, and the characters. Raises Invalid, Conflict beyond `MOST_DIARIES`."""
    line = head.line
    cast = (await queries.read_cast(db_session, line)).characters
    name = choose_diary(cast, character, part=part)
    if name and not cast:
        names = await queries.list_names(db_session, line)
        if name not in names and len(names) >= MOST_DIARIES:
            raise Conflict(
                f"The chat names no characters and already has {MOST_DIARIES} diaries. Name its characters to add more."
            )
    return name, cast


async def _forget_writing(db_session: DbSession, head: Head, name: str, at_seq: int) -> None:
    """Cancel the service's entry about the turns that the character has now written about with its own tool.

    It can already be scheduled, because the message that calls the tool may be the reply that completed the turns.
    """
    writing = await change_queries.list_writing(db_session, head.line, NAME, WRITE, at_seq)
    keys = [row["key"] for row in writing if row["first_seq"] <= at_seq]
    own = [key for key in keys if key.removeprefix(WRITE).partition(":")[2] == name]
    await unschedule(db_session, head, NAME, own)


async def _write(
    db_session: DbSession, head: Head, name: str, content: str, *, words: bytes | None, now: datetime
) -> UUID:
    """Insert an entry after the newest message; `words` is the identity of a character's text, None for a person's.

    A character's entry is dated by that message, a person's by the current time.
    """
    entry_id, origin = uuid7(), "person" if words is None else "tool"
    at_seq, sent_at = await queries.find_newest_message(db_session, head.line)
    values = {
        "entry_id": entry_id,
        "character": name,
        "number": take_number(head),
        "at_seq": at_seq,
        "origin": origin,
        "content": content,
        "identity": words,
        "dated_at": now if words is None or sent_at is None else sent_at,
        "created_at": now,
    }
    await queries.insert_entry(db_session, head.line, values)
    await reconcile_fold_work(db_session, head, name, now=now, settle_s=db_session.settle_s, again=False)
    defer(db_session, LayerChanged(head, NAME))
    return entry_id


async def _change(
    db_session: DbSession, head: Head, entry: DiaryEntry, values: dict[str, Any], *, now: datetime
) -> None:
    """Update an entry for a person, cancel its rewriting by the service, and update the folds that cover it."""
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
