"""Plans a re-import: which message of the list matches which row, and which of them differ."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import orjson

from app.chats.head import Head, NewMessage
from app.messages.echoes import drop_echo
from app.messages.schemas import MessageIn
from app.reimport.diff import Existing, Wanted, align
from app.reimport.swipe_choice import SwipeChoice, choose_swipe

_OPTIONAL = ("name", "kind", "importance", "tool_calls", "tool_call_id", "metadata", "sent_at")
_PLAIN = ("role", "name", "kind", "content", "tool_call_id", "importance", "sent_at")
_JSON = ("tool_calls", "metadata")


@dataclass(frozen=True, slots=True)
class Match:
    """A wanted message and the row that it matches.

    Attributes:
        wanted: The message as it is to be; an optional field that the caller left out has the row's value.
        row: The row on the line, which may be a tombstone; None if the message is new.
        former: The row as a message that can be appended.
        differs: Whether there is a row and it differs from `wanted`.
        swipe: The swipes to add, and the swipe to select; if the selected one has another text than the wanted one, it
            is edited. None if no swipe is added and the selection does not change.
        new_text: A text that none of the row's swipes has yet: the wanted text, or else the first swipe that is added;
            None if there is no such text.

    """

    wanted: NewMessage
    row: asyncpg.Record | None = None
    former: NewMessage | None = None
    differs: bool = False
    swipe: SwipeChoice | None = None
    new_text: str | None = None

    @property
    def may_change_swipes(self) -> bool:
        """Whether there is a row, and its text differs or swipes are given."""
        return self.row is not None and (self.row["content"] != self.wanted.content or bool(self.wanted.swipes))

    @property
    def is_added(self) -> bool:
        """Whether the message is new, or was deleted and is restored."""
        return self.row is None or bool(self.row["deleted"])

    @property
    def is_relinked(self) -> bool:
        """Whether there is a row, and the message makes other tool calls or is the result of another tool call."""
        return self.former is not None and self.differs and _links(self.former) != _links(self.wanted)


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that a re-import makes.

    Attributes:
        matches: The wanted messages, in order.
        removed: The rows that are not deleted and match no wanted message.
        diverges_at: The index of the first wanted message that cannot keep its place (`Alignment`); None if the line
            can be changed in place.

    """

    matches: Sequence[Match]
    removed: Sequence[asyncpg.Record]
    diverges_at: int | None

    @property
    def new_texts(self) -> list[tuple[str, str]]:
        """(message id, text) of the rows that get a text that they did not have."""
        return [(match.wanted.message_id, match.new_text) for match in self.matches if match.new_text is not None]

    @property
    def is_in_place(self) -> bool:
        """Whether the line can be changed in place."""
        return self.diverges_at is None

    @property
    def kept(self) -> Sequence[Match]:
        """The wanted messages before `diverges_at`, which keep their seqs; all if the line can be changed in place."""
        return self.matches[: self.diverges_at]

    @property
    def moved(self) -> Sequence[Match]:
        """The wanted messages from `diverges_at` on, moved or new; empty if the line can be changed in place."""
        return () if self.diverges_at is None else self.matches[self.diverges_at :]

    @property
    def kept_seq(self) -> int:
        """The last seq that a wanted message keeps; 0 if none does."""
        return max((match.wanted.seq for match in self.kept), default=0)


def make_plan(
    head: Head, rows: Sequence[asyncpg.Record], given: Sequence[MessageIn], made: Sequence[NewMessage]
) -> Plan:
    """Match the messages `given` with the line's rows, both in order.

    `made` are the same messages in the form in which they will be stored: without time stamps that a model has copied
    from the prompt into its reply. Rows can still have such time stamps, so they are removed for the comparison.
    """
    alignment = align(
        [Existing(r["seq"], r["message_id"], r["role"], r["name"], _compared(head, r), r["deleted"]) for r in rows],
        [Wanted(message.id, new.role, new.name, new.content) for message, new in zip(given, made, strict=True)],
    )
    by_seq = {row["seq"]: row for row in rows}
    matches = [
        Match(new) if seq is None else _match(head, message, new, by_seq[seq])
        for message, new, seq in zip(given, made, alignment.matches, strict=True)
    ]
    return Plan(matches, [by_seq[seq] for seq in alignment.removed], alignment.diverges_at)


def choose_swipes(plan: Plan, swipes: Iterable[asyncpg.Record]) -> Plan:
    """Return the plan with the swipes to select and to add; `swipes` are the rows' unselected swipes."""
    by_seq: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for swipe in swipes:
        by_seq[swipe["seq"]][swipe["swipe_index"]] = swipe["content"]
    return replace(plan, matches=[_choose_swipe(match, by_seq) for match in plan.matches])


def _choose_swipe(match: Match, unselected: Mapping[int, Mapping[int, str]]) -> Match:
    row, wanted = match.row, match.wanted
    if row is None or not match.may_change_swipes:
        return match
    selected = row["selected_swipe"]
    known = {selected: row["content"], **unselected.get(row["seq"], {})}
    swipe = choose_swipe(known, selected, wanted.content, wanted.swipes, wanted.selected_swipe)
    added = next((text for _, text in swipe.added), None)
    match = replace(match, new_text=added if wanted.content in known.values() else wanted.content)
    return match if swipe == (selected, []) else replace(match, swipe=swipe, differs=True)


def _compared(head: Head, row: asyncpg.Record) -> str:
    return drop_echo(head, row["role"], row["name"], row["content"])


def _match(head: Head, given: MessageIn, made: NewMessage, row: asyncpg.Record) -> Match:
    former = _as_former(row)
    if made.content == _compared(head, row):
        made = made._replace(content=former.content, tokens=former.tokens)
    left_out = {name: getattr(former, name) for name in _OPTIONAL if name not in given.model_fields_set}
    wanted = made._replace(
        seq=former.seq,
        message_id=former.message_id,
        excluded=former.excluded,
        hidden_by=former.hidden_by,
        **left_out,
    )
    is_same = (wanted.role, wanted.name, wanted.content) == (former.role, former.name, former.content)
    digest = former.digest if is_same else head.digest(wanted.role, wanted.name, wanted.content)
    wanted = wanted._replace(digest=digest)
    if wanted.tool_calls is not None:
        wanted = wanted._replace(blank=False, tokens=wanted.tokens if wanted.content.strip() else 0)
    differs = any(getattr(former, name) != getattr(wanted, name) for name in _PLAIN) or any(
        not _is_same_json(getattr(former, name), getattr(wanted, name)) for name in _JSON
    )
    return Match(wanted, row, former, differs)


def _as_former(row: asyncpg.Record) -> NewMessage:
    return NewMessage(
        message_id=row["message_id"],
        role=row["role"],
        name=row["name"],
        kind=row["kind"],
        content=row["content"],
        tokens=row["tokens"],
        blank=row["blank"],
        importance=row["importance"],
        tool_calls=row["tool_calls"],
        tool_call_id=row["tool_call_id"],
        metadata=row["metadata"],
        sent_at=row["sent_at"],
        identity=row["identity"],
        digest=row["digest"],
        seq=row["seq"],
        excluded=row["excluded"],
        hidden_by=row["hidden_by"],
    )


def _links(message: NewMessage) -> tuple[str | None, list[str]]:
    """Return the id of the tool call whose result the message is, and the ids of the calls that it makes."""
    calls = _read(message.tool_calls) if message.tool_calls else ()
    return message.tool_call_id if message.role == "tool" else None, [str(call.get("id")) for call in calls]


def _is_same_json(stored: str | None, given: str | None) -> bool:
    return stored == given or (stored is not None and given is not None and _read(stored) == _read(given))


def _read(json: str) -> Any:
    return orjson.loads(json)
