"""What goes over the wire about operations."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import Given, Name


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
    """An item of background work. It belongs to a chat, to a user, or to the tenant."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "019aa2b4-6f00-7c1e-8d53-6b1a2f0c9e47",
                    "chat_id": "lighthouse",
                    "user_id": "mira",
                    "layer": "memos",
                    "status": "failed",
                    "held": None,
                    "attempts": 6,
                    "error": "503 Service Unavailable",
                    "run_after": "2026-04-01T13:11:13Z",
                    "failed_at": "2026-04-01T13:11:14Z",
                }
            ]
        }
    )

    id: UUID = Field(description="The id of the item.")
    chat_id: str | None = Field(description="The chat; null if the item belongs to a user or to the tenant.")
    user_id: str | None = Field(
        description="The user, or the user of the chat; null if the chat has none or the item belongs to the tenant."
    )
    layer: str = Field(description="The layer that makes it.")
    status: Literal["due", "running", "failed"] = Field(
        description="`due`: waits for its time or for a worker. `running`: a worker has claimed it. "
        "`failed`: all attempts have failed; it stays until it is retried."
    )
    held: Literal["monthly_token_limit"] | None = Field(
        description="Why the item is not made although it is due. `monthly_token_limit`: the tenant has used up the "
        "tokens of this month; the item is made next month, or when the limit is raised."
    )
    attempts: int = Field(description="How many attempts were made, the running one included.")
    error: str | None = Field(description="Why the last attempt failed.")
    run_after: datetime = Field(description="The item is not tried before this time.")
    failed_at: datetime | None = Field(description="When the last of all attempts failed.")


class WorkAccepted(BaseModel):
    """The work is scheduled."""

    work_id: UUID = Field(description="The id of the work item; `GET /v1/work/{work_id}` shows its status.")


class RetryFailed(Given):
    """Which failed items to retry; without any field all of them."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"layer": "memos", "chat_id": "lighthouse"}]}
    )

    layer: Name | None = Field(None, description="Only items of this layer.")
    chat_id: Name | None = Field(None, description="Only items of this chat.")


class RetriedOut(BaseModel):
    """How much is retried."""

    retried: int = Field(description="How many failed items are due again.")


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
