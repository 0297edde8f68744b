"""Brings what a person changed on the pages of a vault into the chat, in one transaction.

A text that was also changed in the chat since the export, or that cannot be changed, stays as it is in the chat. The
outcome lists it as skipped. Nothing on a page of sections is changed if it does not have the structure that the export
wrote (`structure.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.models import ChatLine
from app.chats.revision import record_nothing
from app.chats.service import get_line
from app.facts import book as facts
from app.kit.db import Database, DbSession
from app.knowledge import reading
from app.memories import book as memories
from app.vault import queries
from app.vault.archive import MAX_BYTES, STATE, VaultFiles, read_file, read_state
from app.vault.errors import InvalidVault
from app.vault.items import Change, Exported, Item, PageError, Verdict, compare, judge
from app.vault.manifest import MARKS, read_manifest
from app.vault.manifest import MAX_BYTES as MAX_MANIFEST_BYTES
from app.vault.pages import Pages
from app.vault.parsing import DAY, Stray, diary_part, read_page
from app.vault.structure import find_problems
from app.vault.verbs import RefusedError, Verbs
from app.vault.wording import find_owner, tidy

_SECTIONS = ("summary.md", "memos.md", "scenes.md", "diary.md")
_PAGES = ("MEMORY.md", *_SECTIONS)
_SHOWN_CHARS = 60


class Changes(NamedTuple):
    """The changes that a person made on the pages of a vault, and what is needed to make them in the chat.

    Attributes:
        created_at: When the chat of the vault was created.
        changes: What a person changed.
        problems: A message for each line of a page that belongs to no item, and for each reason not to change anything
            on a page.
        known: The marks of all items that the export wrote; a mark names an item on its page.

    """

    created_at: datetime
    changes: Sequence[Change]
    problems: Sequence[str]
    known: frozenset[str]


@dataclass(slots=True)
class Outcome:
    """The changes that were made in the chat, their numbers, and what was skipped.

    Attributes:
        edited, added, removed: The numbers of items.
        made: A line for each change that was made.
        skipped: A line for each change that was not made, and the lines of `Changes.problems`.
        notes: A line for each heading of a changed or new text that the chat does not keep.

    """

    edited: int = 0
    added: int = 0
    removed: int = 0
    made: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_changes(vault: VaultFiles) -> Changes:
    """Return what was changed on the pages of a vault since its export. Raises InvalidVault."""
    created_at = _read_created_at(vault)
    try:
        manifest = read_manifest(read_file(vault, MARKS, MAX_MANIFEST_BYTES))
        if manifest.line:
            raise InvalidVault(f"The pages show the line {manifest.line}, which was not the current one.")
        days = {name for name in (*vault.list_names(), *manifest.digests) if DAY.fullmatch(name)}
        items, problems = list[Item](), list[str]()
        exported = manifest.digests
        for name in (*_PAGES, *sorted(days)):
            found, strays = read_page(name, read_file(vault, name, MAX_BYTES).decode())
            if name not in _SECTIONS:
                problems += [f"{name}, line {one.line}: is no part of an item" for one in strays]
            elif wrong := _find_problems(name, exported, found, strays):
                problems += wrong
                exported = {part: marks for part, marks in exported.items() if part.partition("#")[0] != name}
                continue
            items += found
    except UnicodeDecodeError:
        raise InvalidVault(f"{name}: is not UTF-8.") from None
    except PageError as error:
        raise InvalidVault(str(error)) from None
    known = frozenset(mark for marks in manifest.digests.values() for mark in marks)
    return Changes(created_at, compare(exported, items), problems, known)


def _find_problems(page: str, exported: Exported, items: Sequence[Item], strays: Sequence[Stray]) -> list[str]:
    """Return the problems of a page of sections; a diary of the export may have no entries any more."""
    parts = {part: marks for part, marks in exported.items() if part.partition("#")[0] == page}
    wrong = [one for one in strays if not (one.diary and diary_part(page, one.diary) in parts)]
    return find_problems(page, {mark: one for marks in parts.values() for mark, one in marks.items()}, items, wrong)


def _read_created_at(vault: VaultFiles) -> datetime:
    first = next(read_state(vault), None)
    try:
        if first is None or first.table != "chats":
            raise InvalidVault(f"{STATE}: there is no chat in the vault.")
        return datetime.fromisoformat(first.fields["created_at"])
    except (KeyError, TypeError, ValueError):
        raise InvalidVault(f"{STATE}: created_at: must be a time.") from None


async def reindex(database: Database, ref: ChatRef, changes: Changes, *, now: datetime, dry_run: bool) -> Outcome:
    """Make the changes in the current line of a chat, and return what was done. With `dry_run`, roll them back.

    Raises ChatNotFound, ChatBusy, and InvalidVault if the vault is that of another chat.
    """
    outcome = Outcome(skipped=list(changes.problems))
    try:
        async with database.unit_of_work(ref.tenant, ref.key) as db_session:
            record_nothing(db_session, (await lock_head(db_session, ref)).line)
            chat = await get_line(db_session, ref, None)
            if chat.created_at != changes.created_at:
                raise InvalidVault(f"The vault is that of another chat than {ref.chat_id!r}.")
            making = await _Making.begin(db_session, ref, chat, changes.known, outcome, now)
            for change in changes.changes:
                await making.make(change)
            if dry_run:
                raise _UndoneError
    except _UndoneError:
        pass
    return outcome


class _UndoneError(Exception):
    """Ends the transaction of a dry run."""


class _Making:
    """Makes changes one after the other."""

    def __init__(
        self, verbs: Verbs, pages: Pages, items: Sequence[Item], known: frozenset[str], outcome: Outcome
    ) -> None:
        self._verbs = verbs
        self._pages = pages
        self._line = (verbs.ref.key, pages.chat.line_id)
        self._items = {item.mark: item for item in items}
        self._texts = {(item.kind, item.page_part, item.text) for item in items}
        self._known = known
        self._outcome = outcome

    @classmethod
    async def begin(
        cls,
        db_session: DbSession,
        ref: ChatRef,
        chat: ChatLine,
        known: frozenset[str],
        outcome: Outcome,
        now: datetime,
    ) -> "_Making":
        """Read the items from the chat's pages, as an export writes them; return the object that changes the chat."""
        await queries.begin(db_session)
        pages, items = Pages(db_session, ref, chat, chat.last_active_at), list[Item]()
        async for name, parts in pages.list_pages():
            if name in _PAGES or DAY.fullmatch(name):
                items += read_page(name, "".join([part async for part in parts]))[0]
        return cls(Verbs(db_session, ref, now), pages, items, known, outcome)

    async def make(self, change: Change) -> None:
        """Make a change, or note why it was not made."""
        item = self._items.get(change.mark or (change.item.mark if change.item else None))
        where = _word_location(change)
        try:
            if change.action == "add" and change.item is not None:
                await self._add(change, change.item, item, where)
            else:
                await self._change(change, item, where)
        except RefusedError as error:
            self._outcome.skipped.append(f"{where}: {error}")

    async def _change(self, change: Change, item: Item | None, where: str) -> None:
        verdict = judge(change, item)
        if verdict.reason:
            raise RefusedError(verdict.reason)
        if item is None or verdict == Verdict():
            return
        _check_kind(item)
        name = self._pages.names.get(str(item.mark), "")  # the summary and the running recap need no name
        if change.item is None:
            await self._verbs.remove(item.kind, name)
            self._outcome.removed += 1
        else:
            await self._verbs.edit(change.item, name, verdict.parts)
            self._outcome.edited += 1
            self._note_heading(change.item, where)
        self._outcome.made.append(f"{change.action} {where}: {_shorten((change.item or item).text)}")

    async def _add(self, change: Change, wanted: Item, item: Item | None, where: str) -> None:
        if wanted.mark is not None and wanted.mark not in self._known and item is not None:
            if item.contents != wanted.contents:
                raise RefusedError("the chat has it with another text")
            return
        _check_kind(wanted)
        if await self._has(wanted):
            return
        await self._check_deleted(wanted)
        after = None
        if wanted.kind == "memo" and change.after in self._pages.names:
            memo_id = UUID(self._pages.names[change.after])
            after = await queries.find_end_of_memo(self._verbs.db_session, self._line, memo_id)
        await self._verbs.add(wanted, character=self._find_character(wanted), after_seq=after)
        self._texts.add((wanted.kind, wanted.page_part, wanted.text))
        self._outcome.added += 1
        self._note_heading(wanted, where)
        self._outcome.made.append(f"add {where}: {_shorten(wanted.text)}")

    async def _has(self, wanted: Item) -> bool:
        """Return whether the chat has a text word for word. Raises RefusedError if a fact has another value."""
        db_session, ref, now = self._verbs.db_session, self._verbs.ref, self._verbs.now
        if wanted.kind == "memory":
            seen = await memories.list_all(db_session, await memories.view_chat(db_session, ref), now=now)
            return any(tidy(one.content) == wanted.text for one in seen)
        if wanted.kind == "fact":
            held = (await facts.list_held(db_session, await reading.view_chat(db_session, ref))).get(wanted.name)
            if held is None or held.content is None:
                return False
            if tidy(held.content) != wanted.text:
                raise RefusedError("the chat has another value")
            return True
        return (wanted.kind, wanted.page_part, wanted.text) in self._texts

    async def _check_deleted(self, wanted: Item) -> None:
        """Raise RefusedError if the text was deleted in the chat: it stays deleted."""
        db_session, ref = self._verbs.db_session, self._verbs.ref
        memo_texts, entries = await queries.list_deleted(db_session, self._line)
        match wanted.kind:
            case "memory":
                view = await memories.view_chat(db_session, ref)
                is_deleted = await memories.is_forgotten(db_session, view, wanted.text)
            case "fact":
                is_deleted = await facts.is_deleted(
                    db_session, await reading.view_chat(db_session, ref), wanted.name, wanted.text
                )
            case "summary" | "recap" | "scene":
                is_deleted = False
            case "memo":
                is_deleted = any(tidy(text) == wanted.text for text in memo_texts)
            case _:
                meant = self._find_character(wanted)
                is_deleted = any(
                    tidy(content) == wanted.text and meant in (character, None) for character, content in entries
                )
        if is_deleted:
            raise RefusedError("was deleted in the chat")

    def _find_character(self, item: Item) -> str | None:
        """Return the character whose diary an entry is in; None for the diary without a character's name."""
        if item.name in self._pages.diaries:
            return self._pages.diaries[item.name] or None
        return find_owner(item.name) or None

    def _note_heading(self, item: Item, where: str) -> None:
        """Note the heading that a person wrote above a memo or an entry; that of an item of the export has its mark."""
        heading = str(item.parts[-1]).rpartition("\n")[2] if item.kind in ("memo", "entry") else ""
        if heading and item.mark not in self._known:
            self._outcome.notes.append(f"{where}: the heading {heading!r} is no part of the text and was not kept")


def _check_kind(item: Item) -> None:
    if item.kind == "block":
        raise RefusedError("core memory is not read from the pages")


def _word_location(change: Change) -> str:
    page = change.page_part.partition("#")[0]
    return f"{page}, line {change.item.line}" if change.item else f"{page}, ^{change.mark}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"
