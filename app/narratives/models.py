"""The versions of all narratives. A version is one step: its own range of material, folded into the version before."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.layers.derived import DerivedColumns

Time = TIMESTAMP(timezone=True)
Json = JSONB(none_as_null=True)


class NarrativeVersion(DerivedColumns, Table):
    """One version of a narrative.

    `layer` and `subject` say of which: `summary`, `recap`, or `diary` with the character's name.
    `first_place…last_place` is the range of its own step, both inclusive, in the layer's places: seqs, or the
    numbers of diary entries. A step of nothing has its last place before its first. What the version tells of ends at
    `last_place`; where that begins is told by the chain of `base_version`.
    `source_hash` is what the step was made from, `current_hash` what its range says now: unequal is stale, and so is
    through it every version folded onto it, up to one that a person wrote.
    `edited` says that a person put it in the place of a text of the service.
    One that a person deleted has lost its text, and is only there for what was folded onto it.
    """

    __tablename__ = "narrative_versions"
    __table_args__ = (
        CheckConstraint("origin IN ('model', 'extractive', 'person')", name="origin"),
        CheckConstraint("first_place >= 1 AND last_place >= first_place - 1", name="range"),
        CheckConstraint("base_version < version", name="base"),
        CheckConstraint("NOT (current AND deleted_at IS NOT NULL)", name="current"),
        Index("ix_narrative_versions_place", "chat_key", "line_id", "layer", "subject", "last_place", "first_place"),
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
            "last_place",
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
    first_place: Mapped[int]
    last_place: Mapped[int]
    text: Mapped[str] = mapped_column(Text)
    tokens: Mapped[int]
    source_hash: Mapped[bytes] = mapped_column(LargeBinary)
    current_hash: Mapped[bytes] = mapped_column(LargeBinary)
    edited: Mapped[bool] = mapped_column(server_default="false")
    current: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(Time)
    deleted_at: Mapped[datetime | None] = mapped_column(Time)
