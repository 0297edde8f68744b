"""Reads the items of a vault's pages: those that `wording.py` wrote, and those that people changed or added. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.vault.items import Item, PageError, Part
from app.vault.wording import (
    ARCHIVED,
    DIARY,
    KINDS,
    MARK_LINE,
    NOTHING_LINES,
    RECAP,
    RECAP_MARK,
    SECTIONS,
    SUMMARY_MARK,
    TITLES,
    find_owner,
    follow_fence,
    hash_name,
    replace_headings,
    tidy,
)

CORE_MEMORY = "Core memory: "
DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")

_SUMMARY = "summary.md"
_DIARIES = "diary.md"

_ELEMENT = re.compile(r"[-*+](?: |$)")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$")
_MARK = re.compile(rf"(?:^|\s)\^((?:{KINDS})-[0-9a-z]{{1,12}})$")
_CATEGORY = re.compile(r"\[([^\[\]\\\n]+)\] ")
_FACT = re.compile(r"\*\*((?:\\.|[^\\*])+)\*\*:(.*)", re.DOTALL)
_TAG = re.compile(r"((?:\\.|[^\\,])*\\?)(?:,|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SCENE = re.compile(r"(?P<number>\d+)(?: · (?P<title>.*))?")
_IN_TAGS = {"q": "`", "n": "\n", "r": "\r"}

_ESCAPED_HEADING = re.compile(r"^( {0,3})\\(\\*#{1,6}(?:[ \t]|$))")
_ESCAPED_UNDERLINE = re.compile(r"^( {0,3})\\(\\*(?:=+|-+)[ \t]*)$")
_ESCAPED_MARK_LINE = re.compile(rf"\\\\*{MARK_LINE.pattern}")
_PARAGRAPHS = re.compile(r"\n\n(?=【)")


class Stray(NamedTuple):
    """A line that is no part of an item.

    On a page of sections, this includes a heading under which the export writes nothing.

    Attributes:
        diary: For the heading of a diary without entries, the heading; otherwise empty.

    """

    page: str
    line: int
    diary: str = ""


class _Open(NamedTuple):
    """An item whose lines are being read."""

    line: int
    heading: str | None  # None for an element of a list
    lines: list[str]


def read_page(page: str, text: str) -> tuple[list[Item], list[Stray]]:
    """Return the items of a page, and the lines that belong to none. Raises PageError for an open block of code."""
    reader = _Reader(page)
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        reader.read(number, line.rstrip())
    reader.end()
    reader.end_diary()
    return (_join_summary(reader.items) if page == _SUMMARY else reader.items), reader.strays


def _join_summary(sections: Sequence[Item]) -> list[Item]:
    """Return the sections of the summary as one item: a person's summary has one text."""
    if not sections:
        return []
    text = "\n\n".join(one.text for one in sections if one.text)
    headings = "\n".join(str(one.parts[1]) for one in sections)
    return [sections[0]._replace(mark=SUMMARY_MARK, parts=(text, headings))]


class _Reader:
    """Reads a page line by line."""

    def __init__(self, page: str) -> None:
        self.items = list[Item]()
        self.strays = list[Stray]()
        self._page = page
        self._has_elements = page == "MEMORY.md" or DAY.fullmatch(page) is not None
        self._open: _Open | None = None
        self._name = ""
        self._empty_diary: Stray | None = None
        self._fence, self._fence_line = "", 0

    def read(self, number: int, line: str) -> None:
        """Read the next line."""
        heading = _HEADING.fullmatch(line) if not self._fence else None
        if self._open and self._open.heading is not None:
            if mark := MARK_LINE.fullmatch(line):
                self.end(mark["mark"])
            elif heading and len(heading[1]) < 3:  # another section, or another diary
                self._begin_section(number, heading)
            else:
                self._follow_code(number, line)
                self._open.lines.append(line)
        elif heading:
            self._begin_section(number, heading)
        elif self._has_elements and _ELEMENT.match(line):
            self.end()
            self._open = _Open(number, None, [line[2:]])
        elif self._open and (line.startswith("  ") or not line or self._open.lines[-1]):
            self._open.lines.append(line.removeprefix("  "))
        elif line and line not in NOTHING_LINES:
            self.end()
            self.strays.append(Stray(self._page, number))

    def end(self, mark: str | None = None) -> None:
        """End the item that is open. Raises PageError."""
        if self._fence:
            raise PageError(f"{self._page}: line {self._fence_line}: the code that begins here has no end.")
        if self._open is None:
            return
        number, heading, lines = self._open
        text, self._open = "\n".join(lines).rstrip(), None
        self._empty_diary = None
        if heading is not None:
            if self._is_misplaced(heading, mark):
                self.strays.append(Stray(self._page, number))
            else:
                self.items.append(self._section(number, heading, _read_section(text), mark))
            return
        if found := _MARK.search(text):
            text, mark = text[: found.start()], found[1]
        if self._page != "MEMORY.md":
            self.items.append(Item("memory", self._page, number, mark, "", _read_memory(tidy(text))))
        elif fact := _FACT.fullmatch(tidy(text)):
            key = _ESCAPE.sub(r"\1", fact[1])
            parts = (tidy(fact[2]),)
            self.items.append(Item("fact", self._page, number, f"fact-{hash_name(key)}", key, parts))
        elif text.strip():
            self.strays.append(Stray(self._page, number))

    def _begin_section(self, number: int, heading: re.Match[str]) -> None:
        self.end()
        words = heading[2] or ""
        if len(heading[1]) == 1:
            if self._page == _DIARIES:
                self._begin_diary(number, words)
            elif self._page in TITLES and (self.items or words != TITLES[self._page]):
                self.strays.append(Stray(self._page, number))
            self._name = words
        elif not self._has_elements or words.startswith(CORE_MEMORY):
            self._open = _Open(number, words, [])

    def _begin_diary(self, number: int, heading: str) -> None:
        self.end_diary()
        if find_owner(heading) is None:
            self.strays.append(Stray(self._page, number))
        elif heading != DIARY or self.items:
            is_again = any(one.name == heading for one in self.items)
            self._empty_diary = Stray(self._page, number, "" if is_again else heading)

    def end_diary(self) -> None:
        """Note the heading of the diary that ends, if the diary has no entries."""
        if self._empty_diary:
            self.strays.append(self._empty_diary)
        self._empty_diary = None

    def _follow_code(self, number: int, line: str) -> None:
        before, self._fence = self._fence, follow_fence(self._fence, line)
        if self._fence and not before:
            self._fence_line = number

    def _is_misplaced(self, heading: str, mark: str | None) -> bool:
        """Return whether the summary or the running recap has a section with a wrong heading or mark, or twice."""
        match self._page:
            case "summary.md":
                is_right = heading in SECTIONS and mark in (None, SECTIONS[heading])
                return not is_right or any(one.parts[1] == heading for one in self.items)
            case "scenes.md" if _is_recap(heading, mark):
                return heading != RECAP or any(one.kind == "recap" for one in self.items)
            case _:
                return False

    def _section(self, number: int, heading: str, text: str, mark: str | None) -> Item:
        match self._page:
            case "summary.md":
                return Item("summary", self._page, number, mark, "", (text, heading))
            case "scenes.md" if _is_recap(heading, mark):
                return Item("recap", self._page, number, RECAP_MARK, "", (text,))
            case "scenes.md":
                return Item("scene", self._page, number, mark, "", (text, *_read_scene(heading)))
            case "diary.md":
                parts = (text, f"{self._name}\n{heading}")
                return Item("entry", diary_part(self._page, self._name), number, mark, self._name, parts)
            case "memos.md":
                return Item("memo", self._page, number, mark, "", (_PARAGRAPHS.sub("\n", text), heading))
            case _:
                return Item("block", self._page, number, mark, "", (text,))


def _is_recap(heading: str, mark: str | None) -> bool:
    """Return whether a section of the page of the scenes is the running recap."""
    return mark == RECAP_MARK or (mark is None and heading == RECAP)


def _read_scene(heading: str) -> tuple[str | None, str | None]:
    """Return the title and the number in the heading of a scene; None for each that is missing."""
    numbered = _SCENE.fullmatch(heading)
    title = numbered["title"] if numbered else heading
    return " ".join((title or "").split()) or None, numbered["number"] if numbered else None


def diary_part(page: str, heading: str) -> str:
    """Return the part of the pages that has the diary with this heading."""
    return f"{page}#{heading}"


def _read_section(text: str) -> str:
    lines = tidy(text).split("\n")
    unmarked = "\n".join(line[1:] if _ESCAPED_MARK_LINE.fullmatch(line) else line for line in lines)
    return replace_headings(unmarked, _ESCAPED_HEADING, _ESCAPED_UNDERLINE, r"\1\2")


def _read_memory(text: str) -> tuple[Part, ...]:
    """Return the parts of a memory: the text; the category and the tags; whether it is in the archive."""
    category = None
    if found := _CATEGORY.match(text):
        category, text = found[1], text[found.end() :]
    is_archived = text.endswith(ARCHIVED)
    text = text.removesuffix(ARCHIVED).rstrip()
    tags = tuple[str, ...]()
    begins = text.rfind("`", 0, -1) if text.endswith("`") else -1
    if begins > 0 and text[begins - 1] == " " and (code := text[begins + 1 : -1]) and "\n" not in code:
        tags, text = tuple(read_tags(code)), text[: begins - 1].rstrip()
    if re.match(r"\\+\[", text):
        text = text[1:]
    return text, (category, tags), is_archived


def read_tags(code: str) -> Iterator[str]:
    """Yield the tags in `code`, the text between the backticks at the end of a memory."""
    if "," not in code:
        yield from code.split()
        return
    for number, found in enumerate(_TAG.finditer(code)):
        tag = found[1].removeprefix(" ") if number else found[1]
        if tag:
            yield _ESCAPE.sub(lambda escaped: _IN_TAGS.get(escaped[1], escaped[1]), tag)
