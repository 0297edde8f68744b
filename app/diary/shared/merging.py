"""Merges the entries of the user's other chats into the texts of a diary. Pure.

The line's own entries are cached on its row, one by one. The entries of other chats are read with each context, so an
entry that is taken back there is left out at once. The entries of the segment `diary` are chosen at a cut of the
history and stay until the next one; for entries of other chats, only the ids are stored. Newer entries are in
`diary_recent`.

Half of the text lines of the segment can be entries of other chats, and more if the chat's own entries need less than
half. A fold contains only entries of its own chat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from app.diary.held import RECENT_LINES, Held, folded_source
from app.diary.wording import (
    HEADING,
    RECENT_HEADING,
    Excerpt,
    Written,
    count_lines,
    cut_to_lines,
    last_lines,
    word_date,
    word_diary,
    word_entry,
)
from app.kit.tokens import count_tokens

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_RECENT = RECENT_LINES // 3 + 2
"""More entries than `diary_recent` has room for: each takes at least two lines, and a blank one before it."""

Key = tuple[int, str]
"""The position of an entry of another chat: microseconds since 1970, and its id."""


class Elsewhere(NamedTuple):
    """A valid entry of another chat.

    Attributes:
        chat_key: The other chat's key.
        chat_id: Its id.
        origin: Who wrote the text.
        entry: The entry; its `number` and `at_seq` are 0, because they belong to the other chat.

    """

    chat_key: str
    chat_id: str
    origin: str
    entry: Written

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Elsewhere":
        """Return the entry of a row of `shared/queries.py`."""
        chat_key, chat_id, entry_id, origin, content, dated_at, created_us = row
        entry = Written(UUID(entry_id), 0, 0, content, datetime.fromisoformat(dated_at), created_us)
        return cls(chat_key, chat_id, origin, entry)

    @property
    def key(self) -> Key:
        """Its position among the entries of other chats."""
        return self.entry.created_us, str(self.entry.entry_id)

    @property
    def created_at(self) -> datetime:
        """When it was written."""
        return _EPOCH + timedelta(microseconds=self.entry.created_us)


@dataclass(frozen=True, slots=True)
class Choice:
    """The entries of other chats that the segment `diary` holds until the next cut.

    Attributes:
        held: (chat key, entry id) of each entry, in order.
        after: Only entries after this position are in `diary_recent`. Earlier ones that `diary` does not hold are in no
            segment, because `diary` had no room for them at the cut. None if `diary` had room for all.

    """

    held: Sequence[tuple[str, str]] = ()
    after: Key | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Choice":
        """Return the value that `to_json` serialised."""
        after = stored["after"]
        return cls([(chat_key, entry_id) for chat_key, entry_id in stored["held"]], tuple(after) if after else None)

    def to_json(self) -> dict[str, Any]:
        """Return the value that is cached on the line's row."""
        return {"held": self.held, "after": self.after}


@dataclass(frozen=True, slots=True)
class Own:
    """The line's own part of a diary.

    Attributes:
        time_zone: The IANA name of the chat's time zone.
        version: The version of the folded part; None without one.
        folded: Its last lines.
        held: The entries that `diary` holds, in order.
        recent: The newest entries of `diary_recent`, in order.
        older_tokens: The tokens of the entries for `diary_recent` that are older than those in `recent`.

    """

    time_zone: str = "UTC"
    version: int | None = None
    folded: str = ""
    held: Sequence[Written] = ()
    recent: Sequence[Written] = ()
    older_tokens: int = 0

    @classmethod
    def of(
        cls,
        time_zone: str,
        version: int | None,
        folded: str,
        held: Sequence[Written],
        recent: Sequence[Written],
        lines: int,
    ) -> "Own":
        """Return the line's own part as it is cached; `lines` is the maximum number of lines of the segment `diary`."""
        older = [_word(entry, time_zone) for entry in recent[:-_MOST_RECENT]]
        tokens = count_tokens("\n\n".join(older)) if older else 0
        return cls(time_zone, version, last_lines(folded, lines), held, recent[-_MOST_RECENT:], tokens)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Own":
        """Return the value that `to_json` serialised."""
        entries = {name: [_read(fields) for fields in stored[name]] for name in ("held", "recent")}
        return cls(**{**stored, **entries})

    def to_json(self) -> dict[str, Any]:
        """Return the value that is cached on the line's row."""
        return {
            "time_zone": self.time_zone,
            "version": self.version,
            "folded": self.folded,
            "held": [[str(one.entry_id), *one[1:]] for one in self.held],
            "recent": [[str(one.entry_id), *one[1:]] for one in self.recent],
            "older_tokens": self.older_tokens,
        }

    def before(self, known: Sequence[Written], held: Held, *, knows_diary: bool) -> "Own":
        """Return the part of the diary from before a message.

        Args:
            known: The newest valid entries from before the message, in order.
            held: What `diary` holds.
            knows_diary: Whether all that `diary` holds is from before the message.

        """
        recent = [one for one in known if one.number > held.after and one.number not in held.numbers]
        if knows_diary:
            return replace(self, recent=recent, older_tokens=0)
        return Own(self.time_zone, held=[one for one in known if one not in recent], recent=recent)


class _Piece(NamedTuple):
    """An entry as the prompt has it."""

    created_us: int
    text: str
    source: str


def count_most(lines: int) -> int:
    """Return how many of the newest entries of other chats are read: more than a diary of `lines` lines can show."""
    return lines // 3 + 8


def choose(own: Own, others: Sequence[Elsewhere], lines: int) -> Choice:
    """Return which of `others` (sorted by time) the segment `diary` holds: the newest ones for which it has room."""
    kept = _cut(others, own, lines)[1]
    dropped = others[: len(others) - kept]
    held = [(one.chat_key, str(one.entry.entry_id)) for one in others[len(others) - kept :]]
    if dropped:
        return Choice(held, dropped[-1].key)
    return Choice(held, others[0].key if len(others) >= count_most(lines) else None)


def choose_until(own: Own, others: Sequence[Elsewhere], lines: int, until_us: int) -> Choice:
    """Return what `choose` returns for the entries up to a time (in microseconds since 1970).

    Later entries are in `diary_recent`.
    """
    return choose(own, [one for one in others if one.entry.created_us <= until_us], lines)


def held_of(cached: Mapping[str, Any], character: str) -> Sequence[tuple[str, str]]:
    """Return (chat key, entry id) of the entries of other chats that the segment `diary` holds for a character.

    `cached` is the layer's cache on the line's row.
    """
    stored = cached.get("characters", {}).get(character, {}).get("shared")
    return Choice.from_json(stored).held if stored else ()


def read_others(shared: Mapping[str, Any], character: str | None, held: Sequence[tuple[str, str]]) -> list[Elsewhere]:
    """Return the entries of a character in other chats, sorted by time.

    Forks have copies of entries, with the same ids. If there are several copies, the one that `diary` holds is
    returned; if it holds none of them, the first one.
    """
    rows = next((rows for name, rows in shared["rows"] or () if name == character), None)
    found: dict[UUID, Elsewhere] = {}
    for one in map(Elsewhere.from_row, rows or ()):
        entry_id = one.entry.entry_id
        if entry_id not in found or (one.chat_key, str(entry_id)) in held:
            found[entry_id] = one
    return sorted(found.values(), key=lambda one: one.key)


def word_merged(own: Own, others: Sequence[Elsewhere], choice: Choice, lines: int) -> dict[str, Any]:
    """Return the segments of a diary with entries of other chats, in the form in which unshared diaries are cached."""
    ids = {entry_id for _, entry_id in choice.held}
    held = [one for one in others if str(one.entry.entry_id) in ids]
    newer = [one for one in others if str(one.entry.entry_id) not in ids]
    if choice.after is not None:
        newer = [one for one in newer if one.key > choice.after]
    texts = _word_held(own, held, lines) or {}
    return texts | {"recent": _word_recent(own, newer)}


def _word_held(own: Own, others: Sequence[Elsewhere], lines: int) -> dict[str, Any] | None:
    shown, kept = _cut(others, own, lines)
    pieces = _order(own.held, own.time_zone)
    left = lines - count_lines("\n\n".join(shown)) - bool(shown)
    excerpt = cut_to_lines(own.folded, [piece.text for piece in pieces], left) if left > 0 else Excerpt("", ())
    mine = _rewrite(pieces, excerpt.entries)
    theirs = _rewrite([_piece_of(one, own.time_zone) for one in others[len(others) - kept :]], shown)
    merged = sorted([*mine, *theirs], key=lambda piece: piece.created_us)
    text = word_diary(HEADING, Excerpt(excerpt.folded, [piece.text for piece in merged]))
    if not text:
        return None
    folded = [folded_source(own.version)] if own.version is not None and excerpt.folded else []
    return _segment(text, [*folded, *(piece.source for piece in merged)])


def _word_recent(own: Own, others: Sequence[Elsewhere]) -> dict[str, Any] | None:
    theirs = [_piece_of(one, own.time_zone) for one in others]
    merged = sorted([*_order(own.recent, own.time_zone), *theirs], key=lambda piece: piece.created_us)
    excerpt = cut_to_lines("", [piece.text for piece in merged], RECENT_LINES)
    if not excerpt.entries:
        return None
    older = [piece.text for piece in merged[: len(merged) - len(excerpt.entries)]]
    left_out_tokens = own.older_tokens + (count_tokens("\n\n".join(older)) if older else 0)
    left_out = {"left_out_tokens": left_out_tokens} if left_out_tokens else {}
    shown = _rewrite(merged, excerpt.entries)
    return _segment(word_diary(RECENT_HEADING, excerpt), [piece.source for piece in shown]) | left_out


def _cut(others: Sequence[Elsewhere], own: Own, lines: int) -> tuple[Sequence[str], int]:
    """Return the texts of the newest of `others` for which `diary` has room, and their number."""
    own_texts = [text for text in (own.folded, *(_word(entry, own.time_zone) for entry in own.held)) if text]
    needed = count_lines("\n\n".join(own_texts))
    room = max(lines // 2, lines - needed - bool(needed))
    if room <= 0:
        return (), 0
    shown = cut_to_lines("", [_piece_of(one, own.time_zone).text for one in others], room).entries
    return shown, len(shown)


def _order(entries: Sequence[Written], time_zone: str) -> list[_Piece]:
    """Return entries of the line in their order, with times for merging.

    An entry that is older than its predecessor gets the time of the predecessor, so that sorting keeps the order.
    """
    pieces, latest_us = [], 0
    for entry in entries:
        latest_us = max(latest_us, entry.created_us)
        pieces.append(_Piece(latest_us, _word(entry, time_zone), f"diary:{entry.entry_id}"))
    return pieces


def _rewrite(pieces: Sequence[_Piece], texts: Sequence[str]) -> list[_Piece]:
    """Return the last `len(texts)` pieces, with `texts` instead of their own; the first text may be shortened."""
    last = pieces[len(pieces) - len(texts) :]
    return [piece._replace(text=text) for piece, text in zip(last, texts, strict=True)]


def _piece_of(one: Elsewhere, time_zone: str) -> _Piece:
    text = word_entry(one.entry.content, word_date(one.entry.dated_at, time_zone), is_elsewhere=True)
    return _Piece(one.entry.created_us, text, f"diary:{one.entry.entry_id}")


def _word(entry: Written, time_zone: str) -> str:
    return word_entry(entry.content, word_date(entry.dated_at, time_zone))


def _read(fields: Sequence[Any]) -> Written:
    entry_id, number, at_seq, content, dated_at, created_us = fields
    return Written(UUID(entry_id), number, at_seq, content, datetime.fromisoformat(dated_at), created_us)


def _segment(text: str, sources: Sequence[str]) -> dict[str, Any]:
    return {"text": text, "tokens": count_tokens(text), "sources": sources}
