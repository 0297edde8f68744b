"""The Markdown of a vault: how its pages are written. Pure.

An item is a text of a layer, such as a memo. On its page it is a section under a heading, or an element of a list. Each
item ends with a mark such as `^memo-0192f3a1b2c3`. The editor Obsidian takes the mark for the name of the paragraph,
and does not show it.

`parsing.py` reads the items back. This module puts a backslash before a character that could be read in two ways, and
`parsing.py` drops the backslash.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime

_LINK = r"\[messages? [\d–]+\]\([^)\n]*\) "
KINDS = "memory|fact|block|memo|entry"
MARK = rf"\^(?P<mark>(?:{KINDS}|summary|recap|scene)-[0-9a-z]{{1,12}})"
"""A mark, as a regular expression."""

MARK_LINE = re.compile(rf"(?:{_LINK})?{MARK}")
"""The line that ends a section."""

SUMMARY_MARK = "summary-text"
RECAP_MARK = "recap-recap"
RECAP = "The story so far"
"""The heading of the running recap."""

SECTIONS = {"Kept": "summary-kept", "The story so far": SUMMARY_MARK}
"""The sections of the summary: the mark of each, by its heading."""

TITLES = {"summary.md": "Summary", "memos.md": "Memo book", "scenes.md": "Scenes"}
"""The title of each page that has one title, and sections below it."""

DIARY = "Diary"
"""The heading of the diary without a character's name."""

_DIARY_ENDS = ("’s diary", "'s diary")

NOTHING = "*Nothing yet.*"
"""The text of a page without items."""
NOTHING_LINES = (NOTHING, "_Nothing yet._")
"""That text, and the form in which formatters of Markdown write it."""

ARCHIVED = " *archived*"
NO_TAGS = " `,`"
"""Added to a memory without tags if its text ends as if the memory had tags or were archived."""

_HEADING = re.compile(r"^( {0,3})(\\*#{1,6}(?:[ \t]|$))")
_UNDERLINE = re.compile(r"^( {0,3})(\\*(?:=+|-+)[ \t]*)$")
_MARK_LINE = re.compile(rf"^()(\\*{MARK_LINE.pattern})$")
_ESCAPED = r"\1\\\2"
_HIGHLIGHT = re.compile(r"\n(?=【)")
_BRACKET = re.compile(r"^(?=\\*\[)")
_PLAIN_TAG = re.compile(r"[^\s`,\\]+")
_FENCE = re.compile(r" {0,3}(`{3,}+(?=[^`]*$)|~{3,})")


def tidy(text: str) -> str:
    """Return a text with Unix line breaks, and without white space at the ends of its lines and around the text."""
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n")).strip("\n").strip()


def close_code(text: str) -> str:
    """Return a text with its last block of code closed. An open block would contain the rest of the page."""
    fence = ""
    for line in text.split("\n"):
        fence = follow_fence(fence, line)
    return f"{text}\n{fence}" if fence else text


def escape_headings(text: str) -> str:
    """Return a text that Markdown shows without headings; lines of code stay as they are.

    A backslash is put before the characters that begin a heading, and before those that underline one.
    """
    return replace_headings(text, _HEADING, _UNDERLINE, _ESCAPED)


def replace_headings(text: str, heading: re.Pattern[str], underline: re.Pattern[str], by: str) -> str:
    """Return a text in which `by` replaces matches of `heading` and, below a line with text, matches of `underline`.

    Lines of code stay as they are.
    """
    lines, fence, before = list[str](), "", ""
    for line in text.split("\n"):
        was, fence = fence, follow_fence(fence, line)
        is_code = bool(was or fence)
        replaced = line if is_code else heading.sub(by, line)
        if not is_code and before.strip():
            replaced = underline.sub(by, replaced)
        lines.append(replaced)
        before = "" if is_code else line
    return "\n".join(lines)


def follow_fence(fence: str, line: str) -> str:
    """Return the fence of the block of code that is open after `line`, or an empty text if none is open.

    A fence consists of the characters that begin a block, such as three backticks. `fence` is that of the block that is
    open before `line`, or empty.
    """
    found = _FENCE.match(line)
    if not fence:
        return found[1] if found else ""
    is_end = found is not None and found[1].startswith(fence) and line.strip() == found[1]
    return "" if is_end else fence


def hash_name(name: str) -> str:
    """Return a short hash of a name, for a mark."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def make_mark(kind: str, name: str) -> str:
    """Return the mark of an item: a UUID is shortened to its last 12 digits, which are random; short names stay."""
    return f"{kind}-{name.replace('-', '')[-12:]}"


def word_section(heading: str, text: str, mark: str, link: str = "") -> str:
    """Return an item under a heading; `link` leads from it to its messages."""
    closed = close_code(escape_headings(tidy(text)))
    escaped = "\n".join(_MARK_LINE.sub(_ESCAPED, line) for line in closed.split("\n"))
    return f"## {heading}\n\n{escaped}\n\n{link + ' ' if link else ''}^{mark}\n\n"


def word_diary(character: str) -> str:
    """Return the heading of the diary of a character; of the one without a name if `character` is empty."""
    return f"{' '.join(character.split())}{_DIARY_ENDS[0]}" if character else DIARY


def find_owner(heading: str) -> str | None:
    """Return the character whose diary has this heading, empty for the one without a name; None if no diary has it."""
    if heading == DIARY:
        return ""
    end = next((end for end in _DIARY_ENDS if heading.endswith(end)), None)
    return heading.removesuffix(end) or None if end else None


def word_element(text: str, mark: str) -> str:
    """Return an item that is an element of a list; its further lines are indented."""
    return f"- {tidy(text).replace(chr(10), chr(10) + '  ')} ^{mark}\n"


def word_fact(key: str, value: str) -> str:
    """Return the text of the element of a fact."""
    escaped = key.replace("\\", "\\\\").replace("*", "\\*")
    return f"**{escaped}**: {tidy(value)}"


def word_memo(text: str) -> str:
    """Return the text of a memo with a paragraph for each highlight; Markdown would join their lines."""
    return _HIGHLIGHT.sub("\n\n", text)


def word_memory(category: str | None, content: str, tags: Sequence[str], *, archived: bool = False) -> str:
    """Return the text of the element of a memory: ``[category] content `tag1 tag2` ``.

    If a tag contains a space, or another character that would end it, commas separate the tags. A memory in the archive
    ends with `*archived*`.
    """
    text = _BRACKET.sub(r"\\", tidy(content))
    if tags:
        text += f" `{word_tags(tags)}`"
    elif text.endswith("`") or (text.endswith(ARCHIVED.strip()) and not archived):
        text += NO_TAGS
    return f"{f'[{category}] ' if category else ''}{text}{ARCHIVED if archived else ''}"


def word_tags(tags: Sequence[str]) -> str:
    """Return tags in the form in which they are written between the backticks at the end of a memory."""
    if all(_PLAIN_TAG.fullmatch(tag) for tag in tags):
        return " ".join(tags)
    return ", ".join(_escape_tag(tag) for tag in tags) + ","


def _escape_tag(tag: str) -> str:
    """Return a tag, escaped so that it has no line break, no backtick, and no comma without a backslash."""
    replaced = tag.replace("\\", "\\\\").replace(",", "\\,").replace("`", "\\q")
    return replaced.replace("\n", "\\n").replace("\r", "\\r")


def word_day(at: datetime) -> str:
    """Return a date as `Saturday, 6 September 2025`."""
    return f"{at:%A}, {at.day} {at:%B} {at.year}"


def word_speech(speaker: str | None, at: datetime, text: str, mark: str, note: str = "") -> str:
    """Return a message as a paragraph of a script; without a speaker it is narration.

    The text of the message cannot begin a heading, and cannot leave a block of code open.
    """
    head = f"**{speaker}**" if speaker else "*Narration*"
    quoted = close_code(escape_headings(tidy(text))) if text.strip() else "*(nothing said)*"
    return f"{head} · {at:%H:%M}{f' · *{note}*' if note else ''} ^{mark}\n\n{quoted}\n\n"
