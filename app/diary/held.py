"""What contexts contain of a diary between two cuts of the history. Pure.

The segment `diary` is in the part of the prompt that the provider caches. At a cut it takes the latest valid fold and
the entries before the anchor, and holds them until the next cut. Between cuts it changes only if something that it
holds changes or becomes invalid, or if the settings or the time zone change. Later entries are in the segment
`diary_recent`, which follows the history unless `diary.recent` places it elsewhere.

If the fold that the segment holds becomes invalid, the content of the segment is chosen again at once. If a new fold is
due that will replace the invalid one, this choice is provisional. When the new fold is made, the content is chosen once
more. If the invalid fold becomes valid again before that, the former choice returns.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.diary.wording import HEADING, RECENT_HEADING, Written, cut_to_lines, word_date, word_diary, word_entry
from app.kit.tokens import count_tokens
from app.narratives.chain import Chain

RECENT_LINES = 20
"""The number of lines of `diary_recent`."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the segment `diary` holds until the next cut.

    Attributes:
        version: The version of the folded part; None without one.
        covered: The number of the last entry that the version covers; 0 without one.
        after: Entries up to this number are not in `diary_recent`: the version covers them, or `diary` had no room for
            them at the cut.
        numbers: The numbers of the entries that it holds, in order, including entries that have become invalid since.
        lost: What the segment held before, if the choice is provisional. Its `version` is None if that version no
            longer exists, or if the history was cut since; the former choice then cannot return.

    """

    version: int | None
    covered: int
    after: int
    numbers: Sequence[int]
    lost: "Held | None" = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Held":
        """Return the value that `to_json` serialised."""
        lost = stored.get("lost")
        return cls(**{**stored, "lost": cls.from_json(lost) if lost else None})

    def to_json(self) -> dict[str, Any]:
        """Return the value that is cached on the line's row."""
        cached = {name: value for name, value in asdict(self).items() if name != "lost"}
        return cached | {"lost": self.lost.to_json()} if self.lost else cached


def hold(version: int | None, folded: str, covered: int, entries: Sequence[Written], limit: int) -> Held:
    """Return what the segment holds from a cut on.

    Args:
        version: The latest valid version of the folded part, or None.
        folded: Its text, or "".
        covered: The number of the last entry that it covers, or 0.
        entries: The newest valid entries before the anchor, without those that the version covers, in order: at most
            `limit`. If there are exactly `limit`, older ones may exist.
        limit: The number of lines of the segment.

    """
    excerpt = cut_to_lines(folded, [word_entry(entry.content, "") for entry in entries], limit)
    numbers = [entry.number for entry in entries[len(entries) - len(excerpt.entries) :]]
    is_whole = len(numbers) == len(entries) < limit
    after = covered if is_whole or not numbers else numbers[0] - 1
    return Held(version, covered, after, numbers)


def find_held(former: Mapping[str, Any], name: str, names: Collection[str]) -> Held | None:
    """Return what a diary holds, or None if it has to be chosen again.

    A diary that began after the cut holds nothing. A chat that names no characters has an unnamed diary, under the name
    "". If a character has just taken the unnamed diary over, the character's diary holds what the unnamed one held; if
    the character also had a diary of its own, the result is None.

    Args:
        former: The cached texts of all diaries, by their characters' names.
        name: The character.
        names: All characters that have a diary now.

    """
    is_adopted = "" in former and "" not in names
    if is_adopted and name in former:
        return None
    stored = former.get("" if is_adopted else name, {})
    return Held.from_json(stored["held"]) if "held" in stored else None if stored else Held(None, 0, 0, [])


def find_lost(held: Held | None, chain: Chain, *, is_valid: bool) -> Held | None:
    """Return what the segment held before the fold in it became invalid, or None if no fold became invalid.

    Between cuts, the result is `held.lost` if the choice is provisional already, or `held` if the version in it has
    become invalid. If that version no longer exists, the `version` of the result is None.

    At a cut, there is a result if the newest version of the chain is invalid. The `version` of the result is None,
    because the former content cannot return after a cut. Its `covered` is the last entry that the invalid version
    covered.

    Args:
        held: What the segment has held so far; None at a cut.
        chain: The chain of the folded part.
        is_valid: Whether the version in `held` is valid, or `held` has none.

    """
    if held is None:
        last = chain.links[-1] if chain.links else None
        return None if last is None or last == chain.latest_valid() else Held(None, last.last_unit, 0, [])
    lost = held.lost or (None if is_valid else held)
    if lost is None:
        return None
    is_there = any(link.version == lost.version for link in chain.links)
    return replace(lost, version=lost.version if is_there else None, lost=None)


def word_held(
    version: int | None, folded: str, entries: Sequence[Written], time_zone: str, limit: int
) -> dict[str, Any] | None:
    """Return the segment `diary` as it is cached, or None if it is empty; `entries` are the held ones, in order."""
    excerpt = cut_to_lines(folded, _word(entries, time_zone), limit)
    version = version if excerpt.folded else None
    sources = [] if version is None else [folded_source(version)]
    text = word_diary(HEADING, excerpt)
    if not text:
        return None
    return _segment(text, sources, entries[len(entries) - len(excerpt.entries) :]) | {"version": version}


def word_recent(entries: Sequence[Written], time_zone: str) -> dict[str, Any] | None:
    """Return the segment `diary_recent` as it is cached, or None if it is empty.

    `left_out_tokens` counts the o200k tokens of the older `entries` for which the segment has no room.
    """
    worded = _word(entries, time_zone)
    excerpt = cut_to_lines("", worded, RECENT_LINES)
    if not excerpt.entries:
        return None
    older = len(entries) - len(excerpt.entries)
    left_out = {"left_out_tokens": count_tokens("\n\n".join(worded[:older]))} if older else {}
    return _segment(word_diary(RECENT_HEADING, excerpt), [], entries[older:]) | left_out


def word_known(
    cached: Mapping[str, Any], known: Sequence[Written], time_zone: str, limit: int, *, knows_diary: bool
) -> dict[str, Any]:
    """Return the segments of a context that ends before a message, in the form in which segments are cached.

    They contain only entries from before the message.

    Args:
        cached: The cached segments of the diary.
        known: The newest valid entries from before the message, in order.
        time_zone: The IANA name of the chat's time zone.
        limit: The number of lines of the segment `diary`.
        knows_diary: Whether everything in the cached segment `diary` is from before the message. If not, the segment in
            the result has no folded part, only entries of `known`, also those that the folded part covers.

    """
    held = cached["held"]
    recent = [one for one in known if one.number > held["after"] and one.number not in held["numbers"]]
    texts = dict(cached)
    if not knows_diary:
        texts = word_held(None, "", [one for one in known if one not in recent], time_zone, limit) or {}
    return texts | {"recent": word_recent(recent, time_zone)}


def folded_source(version: int) -> str:
    """Return the name under which a context lists a version of the folded part among its sources."""
    return f"diary:folded:{version}"


def _word(entries: Sequence[Written], time_zone: str) -> list[str]:
    return [word_entry(entry.content, word_date(entry.dated_at, time_zone)) for entry in entries]


def _segment(text: str, sources: Sequence[str], entries: Sequence[Written]) -> dict[str, Any]:
    return {
        "text": text,
        "tokens": count_tokens(text),
        "sources": [*sources, *(f"diary:{entry.entry_id}" for entry in entries)],
    }
