"""How the demo words what all of its parts tell: headings, numbers, days, quotations. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

WIDTH = 96
BULLET = "· "


class Calendar:
    """When the messages of a chat were sent, in its own time zone.

    Args:
        times: By seq.
        zone: IANA name.

    """

    def __init__(self, times: Mapping[int, datetime], zone: str) -> None:
        self._times = times
        self._zone = ZoneInfo(zone)

    def __len__(self) -> int:
        return len(self._times)

    def word_day(self, seq: int) -> str:
        """The day of a message: `Sat 6 Sep 2025`; nothing for a seq that no message has."""
        at = self._find(seq)
        return f"{_word_day(at)} {at.year}" if at else ""

    def word_span(self, first_seq: int, last_seq: int) -> str:
        """The days from one message to another, and their seqs."""
        first, last = self._find(first_seq), self._find(last_seq)
        messages = f"messages {word_range(first_seq, last_seq)}"
        if first is None or last is None:
            return messages
        year = "" if first.year == last.year else f" {first.year}"
        begin = "" if first.date() == last.date() else f"{_word_day(first)}{year} – "
        return f"{begin}{_word_day(last)} {last.year} · {messages}"

    def _find(self, seq: int) -> datetime | None:
        at = self._times.get(seq)
        return at.astimezone(self._zone) if at else None


def heading(text: str) -> str:
    """A heading, underlined."""
    return f"\n{text}\n{'═' * len(text)}"


def part(text: str) -> str:
    """What parts a list under a heading."""
    return "\n" + textwrap.fill(f"— {text} —", WIDTH)


def fill(text: str, indent: int, bullet: str = "") -> str:
    """`text` as a paragraph; what follows its first line stands under the text behind `bullet`."""
    return textwrap.fill(
        text, WIDTH, initial_indent=" " * indent + bullet, subsequent_indent=" " * (indent + len(bullet))
    )


def fill_lines(text: str, indent: int, bullet: str = "") -> Iterator[str]:
    """The lines of `text`, each as a paragraph behind `bullet`, items of a list behind their own; blank ones stay."""
    for line in text.splitlines():
        item = line.removeprefix("- ")
        yield fill(item, indent, bullet if item == line else BULLET) if item.strip() else ""


def word_range(first: int, last: int) -> str:
    """Two seqs, both inclusive."""
    return f"{first}–{last}" if last > first else str(first)


def count(number: int, noun: str, plural: str = "") -> str:
    """How many of what."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def word_author(made: Mapping[str, Any]) -> str:
    """Who wrote what the service lists with its `origin` and its `model`."""
    match made["origin"]:
        case "extractive":
            return "quoted, no model"
        case "person":
            return "written by a person"
        case _:
            return f"written by {made['model']}"


def join_seqs(seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Seqs in order as ranges, both ends inclusive."""
    ranges: list[tuple[int, int]] = []
    for seq in seqs:
        if ranges and seq == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], seq)
        else:
            ranges.append((seq, seq))
    return ranges


def _word_day(day: datetime) -> str:
    return f"{day:%a} {day.day} {day:%b}"
