"""What goes over the wire about operations."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


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
    key: str = Field(description="What of the layer: a memo's id, a fold, a scene, an entry of a diary.")
    status: Literal["due", "running", "failed"] = Field(description="Where it stands.")
    held: Literal["monthly_token_limit"] | None = Field(
        description="Why nobody makes it although it is due. `monthly_token_limit`: the tenant has used up the tokens "
        "of this month; it is made in the next one, or when the limit is raised."
    )
    attempts: int = Field(description="How often it was tried.")
    error: str | None = Field(description="What went wrong last.")
    run_after: datetime = Field(description="It is tried no earlier.")
    failed_at: datetime | None = Field(description="When it failed for good.")


class LayerUsage(BaseModel):
    """What the model was used for in one layer."""

    layer: str = Field(description="The kind of memory.")
    calls: int = Field(
        description="How often the model was called, failures included. "
        "A call that is tried again at once, as after a 503, is one call."
    )
    failures: int = Field(
        description="How many calls brought no answer in the end: no connection, a time-out, a refusal."
    )
    prompt_tokens: int = Field(
        description="As the model's server counts them, else as o200k; of failures only what the server tells of."
    )
    completion_tokens: int = Field(description="Likewise, of the answers.")
    wait_s: float = Field(description="Seconds between questions and answers, waits for a free slot included.")


class UsageOut(BaseModel):
    """What the model was used for in one month."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "month": "2026-04",
                    "limit_tokens": 2_000_000,
                    "used_tokens": 171_400,
                    "items": [
                        {
                            "layer": "memos",
                            "calls": 131,
                            "failures": 2,
                            "prompt_tokens": 160_300,
                            "completion_tokens": 11_100,
                            "wait_s": 203.417,
                        }
                    ],
                }
            ]
        }
    )

    month: str = Field(description="The calendar month in UTC.")
    limit_tokens: int | None = Field(
        description="How many tokens the tenant may use in a month, as it is set now; null is no limit. Beyond it "
        "background work is held until the next month; requests are answered as ever."
    )
    used_tokens: int = Field(description="Tokens of prompts and answers together, which the limit is compared with.")
    items: list[LayerUsage] = Field(description="The layers that asked the model, by name.")
