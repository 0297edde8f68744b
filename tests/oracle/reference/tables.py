"""The rows of a line's narratives, diary entries and scenes, and its context cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from app.chats.eligibility import Filters
from app.kit.db import Connection

Narrative = tuple[str, str]
"""A layer and the subject of the narrative; the subject is "" if the layer has only one."""


@dataclass(frozen=True)
class Version:
    """A version of a narrative. Deleted versions remain, because later versions build on them."""

    layer: str
    subject: str
    version: int
    base_version: int | None
    first_unit: int
    last_unit: int
    origin: str
    kept_text: str
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
    def is_kept(self) -> bool:
        """Whether a person wrote this version's kept text with it."""
        return self.by_person and self.kept_text != ""

    @property
    def whole(self) -> str:
        """The kept text and the folded one, as a context contains them."""
        return "\n\n".join(part for part in (self.kept_text, self.text) if part)

    @property
    def is_fresh(self) -> bool:
        """Whether its own input has not changed since it was made."""
        return self.source_hash == self.current_hash


@dataclass(frozen=True)
class DiaryEntry:
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
    kept: bool
    hidden: bool
    deleted: bool
    dated_at: datetime

    @property
    def is_empty(self) -> bool:
        """Whether the service found nothing to write in the current messages."""
        return not self.content and self.origin == "model" and self.source_hash == self.current_hash

    def is_valid(self, *, generated: bool = True) -> bool:
        """Whether the entry is shown; a generated one must be fresh, and is not shown without `generated`."""
        if self.deleted or self.hidden or not self.content:
            return False
        return self.origin != "model" or (generated and self.source_hash == self.current_hash)


@dataclass(frozen=True)
class Scene:
    """A closed scene, or a former one whose break was removed."""

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
    def is_valid(self) -> bool:
        """Whether its recap is not pending and not stale."""
        return self.status != "pending" and (self.by_person or self.source_hash == self.current_hash)

    @property
    def by_person(self) -> bool:
        """Whether a person wrote the recap."""
        return self.origin == "person"

    @property
    def contributes(self) -> bool:
        """Whether the running recap folds it in."""
        return self.is_valid and self.status == "ready"


@dataclass(frozen=True)
class Tables:
    """The rows of a line.

    Attributes:
        scenes: The closed scenes, in story order.
        lifted: The scenes whose break was removed.
        context_cache: The column of `chats`, without the memos.

    """

    versions: Sequence[Version]
    entries: Sequence[DiaryEntry]
    scenes: Sequence[Scene]
    lifted: Sequence[Scene]
    context_cache: Mapping[str, Any]

    @property
    def narratives(self) -> list[Narrative]:
        return sorted({(one.layer, one.subject) for one in self.versions})

    def versions_of(self, narrative: Narrative) -> list[Version]:
        """Return the versions of a narrative, oldest first, including deleted ones."""
        return [one for one in self.versions if (one.layer, one.subject) == narrative]

    @property
    def recap_versions(self) -> list[int]:
        """The versions of the running recap that are not deleted."""
        return self._listed("recap")

    @property
    def summary_versions(self) -> list[int]:
        """The versions of the summary that are not deleted."""
        return self._listed("summary")

    def _listed(self, layer: str) -> list[int]:
        return [one.version for one in self.versions if one.layer == layer and not one.deleted]


_VERSIONS = """
    SELECT layer, subject, version, base_version, first_unit, last_unit, origin, kept_text, text, tokens,
        filters::text AS filters, source_hash, current_hash, current, created_at, deleted_at IS NOT NULL AS deleted
    FROM narrative_versions WHERE chat_key = $1 AND line_id = $2 ORDER BY layer, subject, version"""

_ENTRIES = """
    SELECT entry_id, character, number, at_seq, origin, content, first_seq, last_seq, filters::text AS filters,
        source_hash, current_hash, edited, kept, hidden, deleted_at IS NOT NULL AS deleted, dated_at
    FROM diary_entries WHERE chat_key = $1 AND line_id = $2 ORDER BY number"""

_SCENES = """
    SELECT scene_id, number, first_seq, last_seq, status, title, recap, filters::text AS filters, source_hash,
        current_hash, origin, lifted_at IS NOT NULL AS lifted
    FROM scenes WHERE chat_key = $1 AND line_id = $2 ORDER BY last_seq"""

_CONTEXT_CACHE = "SELECT (context_cache - 'memos')::text FROM chats WHERE chat_key = $1 AND line_id = $2"


async def read_tables(connection: Connection, chat_key: UUID, line_id: UUID) -> Tables:
    """Return the rows of a line. They are consistent only if nothing is written at the same time."""

    async def fetch(statement: str) -> list[dict[str, Any]]:
        rows = [dict(row) for row in await connection.fetch(statement, chat_key, line_id)]
        for row in rows:
            if "filters" in row:
                row["filters"] = Filters.from_json(orjson.loads(row["filters"] or "{}"))
        return rows

    scenes = [Scene(**row) for row in await fetch(_SCENES)]
    return Tables(
        versions=[Version(**row) for row in await fetch(_VERSIONS)],
        entries=[DiaryEntry(**row) for row in await fetch(_ENTRIES)],
        scenes=[scene for scene in scenes if not scene.lifted],
        lifted=[scene for scene in scenes if scene.lifted],
        context_cache=orjson.loads(await connection.fetchval(_CONTEXT_CACHE, chat_key, line_id)),
    )
