"""The table of the versions of all narratives. A narrative is a text that grows: summary, running recap, or diary.

A version folds one step, its own range of material, into the text of an earlier version, its base.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.layers.derived import DerivedColumns, RefusalsColumn

Time = TIMESTAMP(timezone=True)
Json = JSONB(none_as_null=True)


class NarrativeVersion(DerivedColumns, RefusalsColumn, Table):
    """One version of a narrative.

    `layer` and `subject` identify the narrative: `summary`, `recap`, or `diary` with the character's name.
    `first_unit…last_unit` is the range of its own step, both inclusive, in the layer's units: message seqs or numbers
    of diary entries. An empty step has `last_unit = first_unit - 1`. The version covers its own step and everything
    that its base covers. If a copy of the line ends before `begins_seq`, the copy does not contain the version.
    `kept_text` is a text of a person that later versions contain unchanged, before `text`; only `text` is folded.
    `kept_text` is "" in narratives other than the summary.
    `source_hash` is the hash of the material that the step was made from. `current_hash` is the hash of this material
    as it is now. If the two differ, the version is stale, and so is every version folded onto it, up to the next
    version that a person wrote.
    `edited` is set if a person replaced a text of the service with this version. If a person deletes a version, its two
    texts are cleared; its row remains for the versions that were folded onto it.
    """

    __tablename__ = "narrative_versions"
    __table_args__ = (
        CheckConstraint("origin IN ('model', 'extractive', 'person')", name="origin"),
        CheckConstraint("first_unit >= 1 AND last_unit >= first_unit - 1", name="range"),
        CheckConstraint("base_version < version", name="base"),
        CheckConstraint("NOT (current AND deleted_at IS NOT NULL)", name="current"),
        Index("ix_narrative_versions_unit", "chat_key", "line_id", "layer", "subject", "last_unit", "first_unit"),
        Index(
            "uq_narrative_versions_current",
            "chat_key",
            "line_id",
            "layer",
            "subject",
            unique=True,
            postgresql_where=text("current"),
        ),
        Index(
            "ix_narrative_versions_stale",
            "chat_key",
            "line_id",
            "layer",
            "subject",
            "last_unit",
            postgresql_where=text("source_hash <> current_hash"),
        ),
        Index(
            "ix_narrative_versions_written",
            "chat_key",
            "line_id",
            "layer",
            "subject",
            postgresql_where=text("origin = 'person' AND deleted_at IS NULL"),
        ),
        {"info": {"begins": "begins_seq"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    layer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    base_version: Mapped[int | None]
    begins_seq: Mapped[int]
    first_unit: Mapped[int]
    last_unit: Mapped[int]
    kept_text: Mapped[str] = mapped_column(Text, server_default="")
    text: Mapped[str] = mapped_column(Text)
    tokens: Mapped[int]
    source_hash: Mapped[bytes] = mapped_column(LargeBinary)
    current_hash: Mapped[bytes] = mapped_column(LargeBinary)
    edited: Mapped[bool] = mapped_column(server_default="false")
    current: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(Time)
    deleted_at: Mapped[datetime | None] = mapped_column(Time)
