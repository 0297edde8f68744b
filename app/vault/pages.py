"""The pages of a vault: a line of a chat in Markdown, read in the transaction of the caller.

No page contains the id of the chat, the time of the export, or facts and memories that were learnt in other chats.
Each item ends with a mark that names it (`wording.py`).
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson

from app.blocks import book as blocks
from app.chats.characters import find_sole
from app.chats.chat_lock import ChatRef
from app.chats.models import ChatLine
from app.facts import book as facts
from app.kit.db import DbSession
from app.knowledge import reading
from app.memories import book as memories
from app.memories.memory import Memory
from app.messages.range_reads import Stretch, list_stretches
from app.messages.reads import find_user_name
from app.messages.text_reads import stream_range
from app.vault import queries
from app.vault.items import Digests
from app.vault.parsing import CORE_MEMORY, read_page
from app.vault.wording import (
    DIARY,
    NOTHING,
    RECAP,
    TITLES,
    hash_name,
    make_mark,
    word_day,
    word_diary,
    word_element,
    word_fact,
    word_memo,
    word_memory,
    word_section,
    word_speech,
)

CHAPTER_MESSAGES = 200

_UNLIMITED = 2**31 - 1

Parts = AsyncIterator[str]


@dataclass
class Pages:
    """The pages of one chat.

    Attributes:
        ref: The chat, as the caller sees it.
        chat: The line that the pages show.
        now: The ages of memories are measured at `now` or at the time of the newest message, whichever is earlier; at
            `now` if there is no message (`MemoryView.find_age_time`). The ages decide which memories have faded into
            the archive.
        digests: The hashes of the items on the pages written so far, by part of the pages and then by mark. A part is a
            page, or the diary of one character on `diary.md`.
        names: For each mark, the id of the item, the key of a fact, or the label of a core block; for a summary or a
            recap, a fixed name.
        diaries: The characters of the diaries, by the headings of the diaries.

    """

    db_session: DbSession
    ref: ChatRef
    chat: ChatLine
    now: datetime
    digests: dict[str, dict[str, Digests]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    diaries: dict[str, str] = field(default_factory=dict)
    _chapters: list[Stretch] = field(default_factory=list)
    _memories: list[Memory] = field(default_factory=list)
    _user_name: str = "User"
    _filled: set[str] = field(default_factory=set)

    @property
    def title(self) -> str:
        """The names of the user and the characters. The user's name is known once `list_pages` has begun."""
        names = [" ".join(name.split()) for name in (self._user_name, *(one["name"] for one in self.chat.characters))]
        return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]

    async def list_pages(self) -> AsyncIterator[tuple[str, Parts]]:
        """Yield the name and content of each page. Read the content to its end before the next page, or not at all."""
        self._chapters = await list_stretches(self.db_session, *self._line, CHAPTER_MESSAGES)
        self._user_name = self.chat.user_name or await find_user_name(self.db_session, *self._line) or "User"
        self._memories = await self._list_memories()
        days = dict[str, list[Memory]]()
        for one in self._memories:
            days.setdefault(self._here(one.said_at).date().isoformat(), []).append(one)
        yield "README.md", self._write_start(sorted(days))
        yield "MEMORY.md", self._write_memory("MEMORY.md")
        for day, learnt in sorted(days.items()):
            yield f"{day}.md", self._write_day(f"{day}.md", day, learnt)
        yield "summary.md", self._write_summary("summary.md")
        yield "memos.md", self._write_memos("memos.md")
        yield "scenes.md", self._write_scenes("scenes.md")
        yield "diary.md", self._write_diary("diary.md")
        for number, chapter in enumerate(self._chapters, start=1):
            yield _chapter_name(number), self._write_chapter(number, chapter)

    async def write_transcript(self) -> Parts:
        """Yield the lines of `transcript.jsonl`."""
        async for row in stream_range(self.db_session, *self._line, 0, 2**31 - 1):
            said = {
                "ts": row["sent_at"].isoformat(),
                "role": row["role"],
                "name": row["name"],
                "content": row["content"],
                "actions": orjson.Fragment(row["tool_calls"] or "[]"),
                "meta": orjson.Fragment(row["metadata"] or "{}"),
                "seq": row["seq"],
                "id": row["message_id"],
            }
            said |= {name: row[name] for name in ("kind", "tool_call_id") if row[name] is not None}
            yield orjson.dumps(said).decode() + "\n"

    # --- the pages ---

    async def _write_start(self, days: Sequence[str]) -> Parts:
        counted = f"{self.chat.message_count:,} messages" if self.chat.message_count != 1 else "1 message"
        yield f"# {self.title}\n\n*{counted}, and what is remembered of them.*\n\n## The story\n\n"
        for number, chapter in enumerate(self._chapters, start=1):
            begins, ends = word_day(self._here(chapter.first_sent_at)), word_day(self._here(chapter.last_sent_at))
            yield f"{number}. [{begins if begins == ends else f'{begins}, to {ends}'}]({_chapter_name(number)})\n"
        yield "\n## What is remembered\n\n"
        yield "- [Memory](MEMORY.md): facts, and what is always kept in mind\n"
        yield "- [Summary](summary.md), [memos](memos.md) and [scenes](scenes.md)\n- [Diary](diary.md)\n"
        for day in days:
            yield f"- [{word_day(datetime.fromisoformat(day))}]({day}.md)\n"
        yield _ABOUT

    async def _write_memory(self, page: str) -> Parts:
        yield "# Memory\n\n"
        if held := await self._list_facts():
            yield "## Facts\n\n"
            for key, value in held:
                yield self._record(page, word_element(word_fact(key, value), self._mark(page, "fact", key)))
            yield "\n"
        view = await reading.view_chat(self.db_session, replace(self.ref, only_chat=True), line=self.chat.line_id)
        for label, block in (await blocks.list_blocks(self.db_session, view)).items():
            mark = self._mark(page, "block", label)
            yield self._record(page, word_section(f"{CORE_MEMORY}{label}", block.text, mark))
        yield self._word_nothing(page)

    async def _write_day(self, page: str, day: str, learnt: Sequence[Memory]) -> Parts:
        yield f"# {day}\n"
        minute = ""
        for one in learnt:
            if (at := f"{self._here(one.said_at):%H:%M}") != minute:
                yield f"\n## {at} — {self.title}\n\n"
                minute = at
            text = word_memory(one.category, one.content, one.tags, archived=one.archived)
            yield self._record(page, word_element(text, self._mark(page, "memory", str(one.memory_id))))

    async def _write_summary(self, page: str) -> Parts:
        written = f"# {TITLES[page]}\n\n"
        async for row in queries.stream(self.db_session, queries.NARRATIVE, *self._line, "summary"):
            for name, heading, text in (("kept", "Kept", row["kept_text"]), ("text", "The story so far", row["text"])):
                if text:
                    written += word_section(heading, text, self._mark(page, "summary", name))
        yield self._record(page, written)
        yield self._word_nothing(page)

    async def _write_memos(self, page: str) -> Parts:
        yield f"# {TITLES[page]}\n\n"
        async for row in queries.stream(self.db_session, queries.MEMOS, *self._line):
            mark = self._mark(page, "memo", str(row["memo_id"]))
            at = row["began_at"] or row["created_at"]
            heading = f"{row['number']} · {word_day(self._here(at))}"
            yield self._record(page, word_section(heading, word_memo(row["text"]), mark, self._link(row)))
        yield self._word_nothing(page)

    async def _write_scenes(self, page: str) -> Parts:
        yield f"# {TITLES[page]}\n\n"
        async for row in queries.stream(self.db_session, queries.NARRATIVE, *self._line, "recap"):
            if row["text"]:
                section = word_section(RECAP, row["text"], self._mark(page, "recap", "recap"))
                yield self._record(page, section)
        async for row in queries.stream(self.db_session, queries.SCENES, *self._line):
            heading = word_scene(row["number"], row["title"])
            mark = self._mark(page, "scene", str(row["scene_id"]))
            yield self._record(page, word_section(heading, row["recap"], mark, self._link(row)))
        yield self._word_nothing(page)

    async def _write_diary(self, page: str) -> Parts:
        character: str | None = None
        async for row in queries.stream(self.db_session, queries.ENTRIES, *self._line):
            if row["character"] != character:
                character = row["character"]
                title = word_diary(character)
                self.diaries[title] = character
                yield f"# {title}\n\n"
            at = self._here(row["dated_at"])
            mark = self._mark(page, "entry", str(row["entry_id"]))
            section = word_section(f"{word_day(at)}, {at:%H:%M}", row["content"], mark)
            yield self._record(page, section, f"# {title}\n")
        if character is None:
            yield f"# {DIARY}\n\n{self._word_nothing(page)}"

    async def _write_chapter(self, number: int, chapter: Stretch) -> Parts:
        yield f"# Chapter {number}\n\n{self._word_way(number)}\n\n"
        day = ""
        bounds = (chapter.first_seq, chapter.last_seq)
        async for row in stream_range(self.db_session, *self._line, *bounds):
            at = self._here(row["sent_at"])
            if word_day(at) != day:
                day = word_day(at)
                yield f"## {day}\n\n"
            yield word_speech(self._speaker(row), at, row["content"], f"m{row['seq']}", _word_flags(row))
        yield f"{self._word_way(number)}\n"

    # --- their parts ---

    @property
    def _line(self) -> tuple[UUID, UUID]:
        return self.ref.key, self.chat.line_id

    def _here(self, at: datetime) -> datetime:
        return at.astimezone(ZoneInfo(self.chat.time_zone))

    def _mark(self, page: str, kind: str, name: str) -> str:
        """Return the mark of an item, and record its name, and that the page has an item."""
        self._filled.add(page)
        mark = make_mark(kind, hash_name(name) if kind in ("fact", "block") else name)
        self.names[mark] = name
        return mark

    def _record(self, page: str, written: str, before: str = "") -> str:
        """Return the item `written`, and record the hashes of the item as `read_page` reads it.

        `before` is the heading that `read_page` needs before the item.
        """
        for item in read_page(page, before + written)[0]:
            self.digests.setdefault(item.page_part, {})[str(item.mark)] = item.digests
        return written

    def _word_nothing(self, page: str) -> str:
        return "" if page in self._filled else f"{NOTHING}\n"

    def _speaker(self, row: Any) -> str | None:
        if row["role"] in ("user", "assistant"):
            default = self._user_name if row["role"] == "user" else find_sole(self.chat.characters) or "Character"
            return str(row["name"] or default)
        return None if row["role"] == "narrator" else str(row["name"] or row["role"].title())

    def _link(self, row: Any) -> str:
        """Return a link to the first message of a row's range; empty if it has none."""
        first, last = row["first_seq"], row["last_seq"]
        number = bisect_right([one.first_seq for one in self._chapters], first or 0)
        if first is None or number == 0:
            return ""
        words = f"message {first}" if first == last else f"messages {first}–{last}"
        return f"[{words}]({_chapter_name(number)}#^m{first})"

    def _word_way(self, number: int) -> str:
        """Return links from a chapter to the chapters around it and to the start page."""
        names = {number - 1: "← The chapter before", number + 1: "The next chapter →"}
        ways = [f"[{words}]({_chapter_name(to)[6:]})" for to, words in names.items() if 1 <= to <= len(self._chapters)]
        return " · ".join([*ways[: number > 1], "[Contents](../README.md)", *ways[number > 1 :]])

    async def _list_facts(self) -> list[tuple[str, str]]:
        view = await reading.view_chat(self.db_session, self.ref, line=self.chat.line_id)
        own = await queries.list_taught(self.db_session, self.ref.key)
        held = await facts.list_held(self.db_session, view)
        return [
            (key, one.content)
            for key, one in sorted(held.items())
            if one.content is not None and (one.rank == 0 or one.statement_id in own)
        ]

    async def _list_memories(self) -> list[Memory]:
        """Return the memories of the chat, and those of its user or tenant that were learnt in it, the oldest first.

        Memories in the scope of the user with one character are left out unless this character is the only active one.
        Memories in the archive, which a person archived or which have faded, are included. The limit
        `memories.max_memories` is not applied, because the result would then depend on the memories of other chats.
        """
        view = await memories.view_chat(self.db_session, self.ref, line=self.chat.line_id)
        view = view._replace(settings=view.settings.model_copy(update={"max_memories": _UNLIMITED}))
        own = await queries.list_taught(self.db_session, self.ref.key)
        found = await memories.list_all(self.db_session, view, now=self.now)
        chosen = [one for one in found if one.rank == 0 or one.statement_id in own]
        return sorted(chosen, key=lambda one: (one.said_at, one.learnt_at, one.memory_id))


def word_scene(number: int, title: str | None) -> str:
    """Return the heading of a scene."""
    words = " ".join((title or "").split())
    return f"{number} · {words}" if words else f"{number}"


def _chapter_name(number: int) -> str:
    return f"story/{number:04}.md"


def _word_flags(row: Any) -> str:
    """Return the kind of a message, such as a thought, and `hidden` if it is hidden or excluded; or an empty text."""
    flags = [str(row["kind"])] if row["kind"] else []
    return ", ".join([*flags, *(["hidden"] if row["hidden_by"] or row["excluded"] else [])])


_ABOUT = """
`transcript.jsonl` contains the messages of this line. `state.json` contains the whole chat, and only this file is read
by `memobook import`. `memobook reindex --from-markdown` brings changes of the facts, memories, summary, memos, scenes
and diaries in these pages into the chat; it finds them with `marks.json`.
"""
