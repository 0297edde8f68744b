"""What the tables hold of a line's narratives, diary and scenes, row by row, and what the chat's row shows of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from app.chats.eligibility import Filters
from app.kit.db import Connection

Narrative = tuple[str, str]
"""A layer, and whose narrative it is if it has several."""


@dataclass(frozen=True)
class Version:
    """A version of a narrative; one that a person has deleted is still there for what was folded onto it."""

    layer: str
    subject: str
    version: int
    base_version: int | None
    first_place: int
    last_place: int
    origin: str
    text: str
    tokens: int
    filters: Filters
    source_hash: bytes
    current_hash: bytes
    current: bool
    created_at: datetime
    deleted: bool

    @property
    def by_person(self) -> bool:
        return self.origin == "person"

    @property
    def clean(self) -> bool:
        """Whether its own step says what it was made from."""
        return self.source_hash == self.current_hash


@dataclass(frozen=True)
class Entry:
    """An entry of a diary."""

    entry_id: UUID
    character: str
    number: int
    at_seq: int
    origin: str
    content: str
    first_seq: int | None
    last_seq: int | None
    filters: Filters
    source_hash: bytes | None
    current_hash: bytes | None
    edited: bool
    deleted: bool
    dated_at: datetime

    @property
    def is_empty(self) -> bool:
        """Whether the service found nothing to write down in what its messages say."""
        return not self.content and self.origin == "model" and self.source_hash == self.current_hash

    def holds(self, *, by_service: bool = True) -> bool:
        """Whether it counts as what somebody wrote; the service's only where that is asked for, and if it is true."""
        if self.deleted or not self.content:
            return False
        return self.origin != "model" or (by_service and self.source_hash == self.current_hash)


@dataclass(frozen=True)
class Scene:
    """A closed scene, or one whose break was lifted."""

    scene_id: UUID
    number: int
    first_seq: int
    last_seq: int
    status: str
    title: str | None
    recap: str
    filters: Filters
    source_hash: bytes | None
    current_hash: bytes
    origin: str
    lifted: bool

    @property
    def holds(self) -> bool:
        """Whether it has a recap that counts, or needs none."""
        return self.status != "pending" and (self.is_written or self.source_hash == self.current_hash)

    @property
    def is_written(self) -> bool:
        """Whether a person wrote the recap."""
        return self.origin == "person"

    @property
    def is_told(self) -> bool:
        """Whether the running recap has something to tell of it."""
        return self.holds and self.status == "ready"


@dataclass(frozen=True)
class Tables:
    """Everything of a line that its narratives are made of.

    Attributes:
        scenes: The closed ones, in story order.
        lifted: Those whose break was lifted.
        shown: What the chat's row holds of each layer.
        due: (layer, key) of what is due or has failed.

    """

    versions: Sequence[Version]
    entries: Sequence[Entry]
    scenes: Sequence[Scene]
    lifted: Sequence[Scene]
    shown: Mapping[str, Any]
    due: frozenset[tuple[str, str]]

    @property
    def narratives(self) -> list[Narrative]:
        return sorted({(one.layer, one.subject) for one in self.versions})

    @property
    def diarists(self) -> list[str]:
        """Whose diaries there are."""
        return sorted({entry.character for entry in self.entries})

    def of(self, narrative: Narrative) -> list[Version]:
        """The versions of a narrative, oldest first, deleted ones too."""
        return [one for one in self.versions if (one.layer, one.subject) == narrative]

    @property
    def recaps(self) -> list[int]:
        """The versions of the running recap that can be chosen."""
        return [one.version for one in self.versions if one.layer == "recap" and not one.deleted]


_VERSIONS = """
    SELECT layer, subject, version, base_version, first_place, last_place, origin, text, tokens,
        filters::text AS filters, source_hash, current_hash, current, created_at, deleted_at IS NOT NULL AS deleted
    FROM narrative_versions WHERE chat_key = $1 AND line_id = $2 ORDER BY layer, subject, version"""

_ENTRIES = """
    SELECT entry_id, character, number, at_seq, origin, content, first_seq, last_seq, filters::text AS filters,
        source_hash, current_hash, edited, deleted_at IS NOT NULL AS deleted, dated_at
    FROM diary_entries WHERE chat_key = $1 AND line_id = $2 ORDER BY number"""

_SCENES = """
    SELECT scene_id, number, first_seq, last_seq, status, title, recap, filters::text AS filters, source_hash,
        current_hash, origin, lifted_at IS NOT NULL AS lifted
    FROM scenes WHERE chat_key = $1 AND line_id = $2 ORDER BY last_seq"""

_SHOWN = "SELECT (context_cache - 'memos')::text FROM chats WHERE chat_key = $1 AND line_id = $2"

_DUE = "SELECT layer, key FROM work WHERE owner_key = $1 AND line_id = $2"


async def read_tables(connection: Connection, chat_key: UUID, line_id: UUID) -> Tables:
    """All of it as it stands; nothing may be written meanwhile."""

    async def fetch(statement: str) -> list[dict[str, Any]]:
        rows = [dict(row) for row in await connection.fetch(statement, chat_key, line_id)]
        for row in rows:
            if "filters" in row:
                row["filters"] = Filters.from_json(orjson.loads(row["filters"] or "{}"))
        return rows

    scenes = [Scene(**row) for row in await fetch(_SCENES)]
    return Tables(
        versions=[Version(**row) for row in await fetch(_VERSIONS)],
        entries=[Entry(**row) for row in await fetch(_ENTRIES)],
        scenes=[scene for scene in scenes if not scene.lifted],
        lifted=[scene for scene in scenes if scene.lifted],
        shown=orjson.loads(await connection.fetchval(_SHOWN, chat_key, line_id)),
        due=frozenset((row["layer"], row["key"]) for row in await fetch(_DUE)),
    )
