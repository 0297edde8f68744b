"""Reads the eligible messages of a range, each with a name for its speaker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import orjson

from app.chats.characters import Characters, find_sole, list_names
from app.chats.eligibility import Filters, is_eligible
from app.chats.hashes import range_hash
from app.kit.db import Connection
from app.messages.text_reads import find_source
from app.summarising.transcript import Utterance


@dataclass(frozen=True, slots=True)
class Source:
    """A range of messages as it was read, with the fields of the chat that prompts need.

    Attributes:
        utterances: Its eligible messages, in order.
        sent_at: When each of them was sent, by seq.
        message_ids: The id of each of them, by seq.
        importance: The importance that callers gave to some of them, by seq, from 0 to 1.
        hash: The hash of their content; it stays the same while none of them changes.
        characters: `{"name", "persona"?, "disabled"?}` of each of the chat's characters.
        language: The chat's language as a BCP 47 tag, if it has one.
        time_zone: The IANA name of the chat's time zone.
        user_name: The user's name: the chat's `user_name`, or else the name in the newest eligible message of the user
            that has one.
        user_persona: The user's persona, if the chat has one.

    """

    utterances: Sequence[Utterance]
    sent_at: Mapping[int, datetime]
    message_ids: Mapping[int, str]
    importance: Mapping[int, float]
    hash: bytes
    characters: Characters
    language: str | None
    time_zone: str
    user_name: str | None
    user_persona: str | None

    @property
    def names(self) -> list[str]:
        """Names of the chat's characters."""
        return list_names(self.characters)

    @property
    def speakers(self) -> set[str]:
        """The names of the chat's characters, of the user and of all who speak."""
        return {*self.names, *(said.name for said in self.utterances), *filter(None, [self.user_name])}

    @property
    def sole(self) -> str | None:
        """The name of the chat's sole character, if it has one."""
        return find_sole(self.characters)


@dataclass(frozen=True, slots=True)
class _Member:
    """A message read from JSON, with the fields that eligibility needs."""

    seq: int
    message_id: str
    role: str
    name: str | None
    kind: str | None
    content: str
    tokens: int
    blank: bool
    excluded: bool
    hidden_by: str | None
    deleted: bool
    digest: str
    sent_at: str
    importance: float | None


async def read_source(
    connection: Connection, line: tuple[UUID, UUID], first_seq: int, last_seq: int, filters: Filters
) -> Source | None:
    """Return the eligible messages from `first_seq` to `last_seq` (inclusive), or None if the line is gone."""
    row = await find_source(connection, *line, first_seq, last_seq)
    if row is None:
        return None
    characters = orjson.loads(row["characters"])
    members = [_Member(**message) for message in orjson.loads(row["messages"] or "[]")]
    eligible = [member for member in members if is_eligible(member, filters)]
    sole = find_sole(characters)
    return Source(
        utterances=[name_speaker(m.seq, m.role, m.name, m.content, sole, row["user_name"]) for m in eligible],
        sent_at={m.seq: datetime.fromisoformat(m.sent_at) for m in eligible},
        message_ids={m.seq: m.message_id for m in eligible},
        importance={m.seq: m.importance for m in eligible if m.importance is not None},
        hash=range_hash([(m.seq, bytes.fromhex(m.digest)) for m in eligible]),
        characters=characters,
        language=row["language"],
        time_zone=row["time_zone"],
        user_name=row["user_name"] or next((m.name for m in reversed(eligible) if m.role == "user" and m.name), None),
        user_persona=row["user_persona"],
    )


def name_speaker(
    seq: int, role: str, name: str | None, text: str, sole: str | None, user_name: str | None = None
) -> Utterance:
    """Return the utterance of a message. The speaker is the message's own name, if it has one.

    Otherwise it is the sole character or "Character" for an assistant message, `user_name` or "User" for a user's, and
    the name of the role for any other.
    """
    roles = {"user": user_name or "User", "assistant": sole or "Character", "narrator": "Narrator", "system": "System"}
    return Utterance(seq, role, name or roles[role], text)
