"""Formatting that all parts of the demo share: headings, paragraphs, numbers, days. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

WIDTH = 96
BULLET = "· "


class Calendar:
    """The times of the messages of a chat, in the chat's time zone.

    Args:
        times: When each message was sent, by seq.
        zone: The IANA name of the time zone.

    """

    def __init__(self, times: Mapping[int, datetime], zone: str) -> None:
        self._times = times
        self._zone = ZoneInfo(zone)

    def __len__(self) -> int:
        return len(self._times)

    def word_day(self, seq: int) -> str:
        """Return the day of a message, such as `Sat 6 Sep 2025`, or an empty string if there is no such message."""
        at = self._find(seq)
        return f"{_word_day(at)} {at.year}" if at else ""

    def word_span(self, first_seq: int, last_seq: int) -> str:
        """Return the days from one message to another, and the seqs of both messages."""
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
    """Return an underlined heading."""
    return f"\n{text}\n{'═' * len(text)}"


def part(text: str) -> str:
    """Return a subheading for a part of a list."""
    return "\n" + textwrap.fill(f"— {text} —", WIDTH)


def fill(text: str, indent: int, bullet: str = "") -> str:
    """Return `text` as a wrapped paragraph after `bullet`, with a hanging indent."""
    return textwrap.fill(
        text, WIDTH, initial_indent=" " * indent + bullet, subsequent_indent=" " * (indent + len(bullet))
    )


def fill_lines(text: str, indent: int, bullet: str = "") -> Iterator[str]:
    """Yield each line of `text` as a paragraph after `bullet`; list items always get a bullet. Keeps blank lines."""
    for line in text.splitlines():
        item = line.removeprefix("- ")
        yield fill(item, indent, bullet if item == line else BULLET) if item.strip() else ""


def word_range(first: int, last: int) -> str:
    """Return a range of seqs, both inclusive, as text."""
    return f"{first}–{last}" if last > first else str(first)


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 memo` or `2 memos`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def join_words(words: Sequence[str]) -> str:
    """Return words or phrases as a list in a sentence, such as `a, b and c`."""
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def word_author(made: Mapping[str, Any]) -> str:
    """Return who wrote an item, from its `origin` and `model`. For a quotation, return why no model wrote the item."""
    match made["origin"]:
        case "extractive":
            return _word_quoted([refusal["kind"] for refusal in made.get("refusals", ())])
        case "person":
            return "written by a person"
        case _:
            return f"written by {made['model']}"


def join_seqs(seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending seqs as ranges, both ends inclusive."""
    ranges: list[tuple[int, int]] = []
    for seq in seqs:
        if ranges and seq == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], seq)
        else:
            ranges.append((seq, seq))
    return ranges


def _word_quoted(kinds: Sequence[str]) -> str:
    """Return why a text is quoted from the messages; `kinds` are those of the answers that were refused."""
    if not kinds:
        return "quoted, no model"
    faults = list(dict.fromkeys(kinds))
    return "quoted, the model declined" if faults == ["declined"] else f"quoted, answers refused ({', '.join(faults)})"


def _word_day(day: datetime) -> str:
    return f"{day:%a} {day.day} {day:%b}"
