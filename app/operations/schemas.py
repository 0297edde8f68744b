"""What goes over the wire about operations."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field


class Health(BaseModel):
    """The process lives."""

    status: Literal["ok"] = Field(description="Always `ok`.")


class Readiness(BaseModel):
    """Whether requests can be served."""

    status: Literal["ok", "degraded", "down"] = Field(
        description="`degraded`: everything answers, but memories are made later or without a model."
    )
    database: Literal["ok", "down", "not migrated"] = Field(description="PostgreSQL and its schema.")
    redis: Literal["ok", "down", "not configured"] = Field(description="Only tells workers when to look.")
    model: Literal["configured", "not configured"] = Field(description="Without one, memos are extractive.")


class WorkOut(BaseModel):
    """Something that is to be made."""

    id: UUID = Field(description="Its id.")
    chat_id: str = Field(description="The chat it is for.")
    layer: str = Field(description="The kind of memory.")
    key: str = Field(description="What of the layer: a memo's id.")
    status: Literal["due", "running", "failed"] = Field(description="Where it stands.")
    attempts: int = Field(description="How often it was tried.")
    error: str | None = Field(description="What went wrong last.")
    run_after: datetime = Field(description="It is tried no earlier.")
    failed_at: datetime | None = Field(description="When it failed for good.")
