"""A diary as it stands in the prompt: each entry under its date, of all of it the last lines. Pure.

What is older has been folded and stands before the entries. Every line counts, blank ones between entries too.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

HEADING = "## Diary"


class Excerpt(NamedTuple):
    """What is shown of a diary.

    Attributes:
        folded: The last lines of what was folded; empty where they have no room.
        entries: The newest entries in order, as they are worded.

    """

    folded: str
    entries: Sequence[str]


def word_date(at: datetime, time_zone: str) -> str:
    """The day of an entry in the chat's time zone: `04/01`."""
    return f"{at.astimezone(ZoneInfo(time_zone)):%m/%d}"


def word_entry(content: str, date: str) -> str:
    """An entry under its date."""
    return f"## {date} — memo entry\n" + "\n".join(content.strip().splitlines())


def count_lines(text: str) -> int:
    """How many lines a text takes; none if it is empty."""
    return text.count("\n") + 1 if text else 0


def cut_to_lines(folded: str, entries: Sequence[str], limit: int) -> Excerpt:
    """The last `limit` lines of a diary.

    No entry is shown in part, but for a newest one that is longer than all of it: of that the last lines.
    """
    left, kept = limit, 0
    for entry in reversed(entries):
        needed = count_lines(entry) + bool(kept)  # with the blank line between two entries
        if needed > left:
            break
        left -= needed
        kept += 1
    if entries and not kept:
        return Excerpt("", (_last_lines(entries[-1], limit),))
    shown = entries[len(entries) - kept :]
    if kept < len(entries):
        return Excerpt("", shown)
    return Excerpt(_last_lines(folded, left - bool(kept)), shown)


def word_diary(excerpt: Excerpt) -> str:
    """The text of the segment; empty for an empty diary."""
    told = [text for text in (excerpt.folded, *excerpt.entries) if text]
    return "\n\n".join((HEADING, *told)) if told else ""


def _last_lines(text: str, limit: int) -> str:
    return "\n".join(text.split("\n")[-limit:]) if limit > 0 else ""
