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
        description="`degraded`: all requests are served, but memory is produced later or without a model. "
        "`down`: this process cannot use the database."
    )
    database: DatabaseState = Field(
        description="The status of PostgreSQL and its schema. `busy`: so many requests of this process wait for a "
        "connection that it could not check PostgreSQL. `disk full` lasts for 30 seconds after each write that fails "
        "for this reason."
    )
    redis: RedisState = Field(
        description="The status of Redis. It wakes workers and counts requests; without it workers poll."
    )
    model: Literal["configured", "not configured"] = Field(
        description="Whether a model is configured. Without one, memories are extractive."
    )
    worker: Literal["ok", "none"] = Field(
        description="Whether a worker has reported within 30 seconds. Without one, no memories are made."
    )
    work: Literal["on time", "late"] = Field(
        description="`late`: an item of due work has waited for a worker for longer than `MEMOBOOK_WORK_LATE_S`."
    )


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
                    "refusals": [{"kind": "declined", "reason": "the model refuses"}],
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
    layer: str = Field(description="The layer that processes the item.")
    status: Literal["due", "running", "failed"] = Field(
        description="`due`: the item waits for its time or for a worker. `running`: a worker has claimed it. If the "
        "attempt ended because PostgreSQL was unavailable or the chat was locked, the item stays `running` for up to 8 "
        "seconds; then any worker tries again. "
        "`failed`: all attempts have failed; the item is kept until it is retried."
    )
    held: Literal["monthly_token_limit"] | None = Field(
        description="Why the item is held although it is due; null if it is not. `monthly_token_limit`: the tenant "
        "has used up the tokens of this month; the item runs next month, or when the limit is raised."
    )
    attempts: int = Field(
        description="The number of attempts, including the running one. An attempt that ended because PostgreSQL was "
        "unavailable or the chat was locked is not counted. The count begins again when the item becomes due for a new "
        "reason, such as an edit."
    )
    error: str | None = Field(description="Why the last attempt failed; null if none has failed.")
    refusals: list[RefusalOut] = Field(
        description="The answers of the model that were refused, in their order, over all attempts. After two answers "
        "that decline, or three of any kind, the model is not asked again, and the memory is made without it "
        "(`origin` is `extractive`). A diary entry is not written then, and the item is "
        "`failed`. The list is empty again when the item becomes due "
        "for a new reason."
    )
    run_after: datetime = Field(description="The earliest time of the next attempt.")
    failed_at: datetime | None = Field(description="When the last attempt failed; null unless `status` is `failed`.")


class WorkAccepted(BaseModel):
    """The work is scheduled."""

    work_id: UUID = Field(description="The id of the work item; `GET /v1/work/{work_id}` shows its status.")


class RetryFailed(RequestModel):
    """Which failed items to retry. Without any field, all of them are retried."""

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
        description="The number of calls, including failed ones. "
        "A call that is retried immediately, such as after a 503, counts as one."
    )
    failures: int = Field(
        description="The number of calls without an answer: no connection, a time-out, or a response with an error or "
        "without text. Answers that the service refused are not counted."
    )
    prompt_tokens: int = Field(
        description="Tokens of prompts, and of texts that became vectors, as counted by the model's server, or in "
        "o200k if it does not count them. "
        "Failed calls only add tokens that the server reports."
    )
    completion_tokens: int = Field(description="Tokens of answers, counted in the same way.")
    wait_s: float = Field(description="The total duration of the calls in seconds, including waits for a free slot.")


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
        description="The current monthly token limit of the tenant; null if there is none. Once it is reached, "
        "background work is held until the next month; requests are served as usual."
    )
    used_tokens: int = Field(description="Tokens of prompts and answers together; compared with the limit.")
    items: list[LayerUsage] = Field(description="The usage by layer, sorted by name.")
