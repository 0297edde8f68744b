"""Requests and responses of operations."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import Name, RequestModel
from app.layers.derived import RefusalOut
from app.operations.readiness import DatabaseState, RedisState


class Health(BaseModel):
    """The process responds."""

    status: Literal["ok"] = Field(description="Always `ok`.")
    version: str = Field(description="The version of the service.")


class Readiness(BaseModel):
    """Whether requests can be served."""

    status: Literal["ok", "degraded", "down"] = Field(
        description="`degraded`: requests are served, but memories are late, missing, or made without a model. "
        "`down`: this process cannot use the database."
    )
    database: DatabaseState = Field(
        description="`busy`: too many requests of this process wait for a connection. `disk full` lasts for 30 seconds "
        "after a write that failed for this reason."
    )
    redis: RedisState = Field(description="Redis wakes workers and counts requests. Without it, workers poll.")
    model: Literal["configured", "not configured"] = Field(description="Without a model, memories are extractive.")
    worker: Literal["ok", "none"] = Field(
        description="`none`: no worker has reported for 30 seconds. No memories are made then."
    )
    work: Literal["on time", "late"] = Field(
        description="`late`: an item of work has waited for a worker for more than `MEMOBOOK_WORK_LATE_S` seconds."
    )


class WorkOut(BaseModel):
    """An item of background work of a chat, a user or the tenant."""

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
                    "refusals": [{"kind": "declined", "reason": "the model refuses"}],
                    "run_after": "2026-04-01T13:11:13Z",
                    "failed_at": "2026-04-01T13:11:14Z",
                }
            ]
        }
    )

    id: UUID = Field(description="The id of the item.")
    chat_id: str | None = Field(description="The chat, or null.")
    user_id: str | None = Field(description="The user, or the chat's user, if there is one.")
    layer: str = Field(description="The layer that processes the item.")
    status: Literal["due", "running", "failed"] = Field(
        description="`due`: the item waits for its time or for a worker. `running`: a worker has claimed it. "
        "`failed`: all attempts have failed; the item is kept until it is retried."
    )
    held: Literal["monthly_token_limit"] | None = Field(
        description="Why a due item does not run, or null. `monthly_token_limit`: it runs next month, or when the "
        "limit is raised."
    )
    attempts: int = Field(
        description="The number of attempts, including the running one. The count begins again when the item becomes "
        "due for a new reason, such as an edit."
    )
    error: str | None = Field(description="Why the last attempt failed.")
    refusals: list[RefusalOut] = Field(description="The model's refused answers in these attempts.")
    run_after: datetime = Field(description="The earliest time of the next attempt.")
    failed_at: datetime | None = Field(description="When the last attempt failed; null unless `status` is `failed`.")


class WorkAccepted(BaseModel):
    """The work is scheduled."""

    work_id: UUID = Field(description="The id of the item.")


class RetryFailed(RequestModel):
    """Which failed items to retry; by default all."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"layer": "memos", "chat_id": "lighthouse"}]}
    )

    layer: Name | None = Field(None, description="Only items of this layer.")
    chat_id: Name | None = Field(None, description="Only items of this chat.")


class RetriedOut(BaseModel):
    """The number of items that are retried."""

    retried: int = Field(description="The number of failed items that are due again.")


class LayerUsage(BaseModel):
    """The usage of the models by one layer."""

    layer: str = Field(description="The name of the layer.")
    calls: int = Field(
        description="The number of calls, including failed ones. A call that is retried at once counts as one."
    )
    failures: int = Field(
        description="The number of calls without an answer, such as a time-out or an error. Answers that the service "
        "refused are not counted."
    )
    prompt_tokens: int = Field(
        description="Tokens of prompts, and of texts that became vectors. The model's server counts them; if it does "
        "not, they are counted in o200k. Failed calls add only what the server reports."
    )
    completion_tokens: int = Field(description="Tokens of answers, counted likewise.")
    wait_s: float = Field(description="The duration of all calls in seconds, including waits for a free slot.")


class UsageOut(BaseModel):
    """The usage of the models by a tenant in one month."""

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
        description="The tenant's current monthly token limit; null if there is none. Once it is reached, background "
        "work is held until the next month."
    )
    used_tokens: int = Field(description="Tokens of prompts and answers together.")
    items: list[LayerUsage] = Field(description="The usage by layer, sorted by name.")
