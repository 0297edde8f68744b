"""The text of a diary in the prompt: the end of the folded part, then the newest entries, each under its date. Pure.

Blank lines between entries count as lines.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

HEADING = "## Diary"
RECENT_HEADING = "## Diary, newest entries"
ELSEWHERE = "memo entry, in another conversation"
"""What is written before an entry of another chat, in the diary and in the results of recall and of `memory_search`."""


class Written(NamedTuple):
    """The fields of an entry that prompts and folds need; `created_us` is its creation in microseconds since 1970."""

    entry_id: UUID
    number: int
    at_seq: int
    content: str
    dated_at: datetime
    created_us: int = 0


class Excerpt(NamedTuple):
    """The part of a diary that is shown.

    Attributes:
        folded: The last lines of the folded part; empty if there is no room for them.
        entries: The texts of the newest entries, in order.

    """

    folded: str
    entries: Sequence[str]


def word_date(at: datetime, time_zone: str) -> str:
    """Return the date of an entry in the chat's time zone: `04/01`."""
    return f"{at.astimezone(ZoneInfo(time_zone)):%m/%d}"


def word_entry(content: str, date: str, *, is_elsewhere: bool = False) -> str:
    """Return an entry under its date; `is_elsewhere` marks an entry of another chat."""
    kind = ELSEWHERE if is_elsewhere else "memo entry"
    return f"## {date} — {kind}\n" + "\n".join(content.strip().splitlines())


def count_lines(text: str) -> int:
    """Return the number of lines of a text; 0 if it is empty."""
    return text.count("\n") + 1 if text else 0


def cut_to_lines(folded: str, entries: Sequence[str], limit: int) -> Excerpt:
    """Return the last `limit` lines of a diary. An entry that does not fit whole is left out with all text before it.

    There is one exception: if the newest entry alone is longer than `limit`, its last lines are returned.
    """
    left, kept = limit, 0
    for entry in reversed(entries):
        needed = count_lines(entry) + bool(kept)  # with the blank line between two entries
        if needed > left:
            break
        left -= needed
        kept += 1
    if entries and not kept:
        return Excerpt("", (last_lines(entries[-1], limit),))
    shown = entries[len(entries) - kept :]
    if kept < len(entries):
        return Excerpt("", shown)
    return Excerpt(last_lines(folded, left - bool(kept)), shown)


def word_diary(heading: str, excerpt: Excerpt) -> str:
    """Return the text of a segment; empty for an empty excerpt."""
    texts = [text for text in (excerpt.folded, *excerpt.entries) if text]
    return "\n\n".join((heading, *texts)) if texts else ""


def last_lines(text: str, limit: int) -> str:
    """Return the last `limit` lines of a text; empty if `limit` is not positive."""
    return "\n".join(text.split("\n")[-limit:]) if limit > 0 else ""
