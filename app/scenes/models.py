"""The table of scenes: spans of one place, time and cast, each closed by a break on its last message."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.layers.derived import MessageRangeColumns, RefusalsColumn

Time = TIMESTAMP(timezone=True)
Json = JSONB(none_as_null=True)


class Scene(MessageRangeColumns, RefusalsColumn, Table):
    """A closed scene `first_seq…last_seq` (inclusive) and its recap, or one whose break was removed.

    The open scene after the last break has no row.

    Scenes are numbered from 1 and follow each other without a gap from seq 1 on. The break is on `last_seq`.

    - `lifted_at`: when the break was removed. The row stays with its recap in case the break is set again, but is not a
      scene meanwhile.
    - `truncated`: a truncation removed the last message of the scene. A row with a title or recap by a person stays
      without its break; the next scene that ends on its `last_seq` or later takes over its text.
    - `closed_by`: who set the break. `time` is a pause, if no model is configured or its answers could not be used;
      `cut` is a forced cut of the history.
    - `source_hash`, `current_hash`: the hash of what the recap was made from, and that of the range now. The recap is
      stale if they differ.
    - `origin`: who wrote the recap as it is now. `edited`: whether a person changed a recap that the service had
      written. `titled`: whether a person wrote the title.
    """

    __tablename__ = "scenes"
    __table_args__ = (
        CheckConstraint("closed_by IN ('person', 'model', 'time', 'cut')", name="closed_by"),
        CheckConstraint("status IN ('pending', 'ready', 'empty')", name="status"),
        CheckConstraint("origin IN ('model', 'extractive', 'person')", name="origin"),
        CheckConstraint("first_seq >= 1 AND first_seq <= last_seq", name="range"),
        CheckConstraint("lifted_at IS NOT NULL OR NOT truncated", name="truncated"),
        Index(
            "uq_scenes_break",
            "chat_key",
            "line_id",
            "last_seq",
            unique=True,
            postgresql_where=text("lifted_at IS NULL"),
        ),
        Index(
            "ix_scenes_lifted",
            "chat_key",
            "line_id",
            "last_seq",
            postgresql_where=text("lifted_at IS NOT NULL"),
        ),
        Index(
            "ix_scenes_stale",
            "chat_key",
            "line_id",
            "last_seq",
            postgresql_where=text("source_hash IS DISTINCT FROM current_hash AND lifted_at IS NULL"),
        ),
        {"info": {"begins": "first_seq"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    scene_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int]
    first_seq: Mapped[int] = mapped_column()
    last_seq: Mapped[int] = mapped_column()
    closed_by: Mapped[str]
    reason: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(server_default="pending")
    origin: Mapped[str] = mapped_column(server_default="model")
    title: Mapped[str | None]
    recap: Mapped[str] = mapped_column(Text, server_default="")
    tokens: Mapped[int] = mapped_column(server_default="0")
    filters: Mapped[dict[str, Any]] = mapped_column(Json)
    current_hash: Mapped[bytes] = mapped_column(LargeBinary)
    attempts: Mapped[int] = mapped_column(server_default="0")
    edited: Mapped[bool] = mapped_column(server_default="false")
    titled: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(Time)
    generated_at: Mapped[datetime | None] = mapped_column(Time)
    lifted_at: Mapped[datetime | None] = mapped_column(Time)
    truncated: Mapped[bool] = mapped_column(server_default="false")

    @hybrid_property
    def is_written(self) -> bool:
        """Whether a person wrote the recap; if so, a change of the messages schedules no new one."""
        return self.origin == "person"
