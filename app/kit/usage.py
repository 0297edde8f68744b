"""Usage of the model: calls, failures, tokens and waiting time by tenant, month and layer.

Each call is added with an upsert in its own statement, so concurrent workers lose no counts, and no other transaction
waits for the row. The token limit of a tenant is compared with the tokens of the month. Usage is also counted for
tenants without a limit: it is shown to them, and a limit that is set later applies to the whole month.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import asyncpg
from sqlalchemy import BigInteger, CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Connection, Database, Table
from app.kit.errors import Unavailable
from app.kit.limits import TokenLimits
from app.kit.log.formatter import describe
from app.kit.ripe_work import WAITING_TENANTS

log = logging.getLogger(__name__)

MAX_CALL_TOKENS = 2**31 - 1
"""The upper limit for the tokens of one call, so that a wrong count from a server cannot overflow the sum."""


class ModelUsage(Table):
    """The usage of the model in one month; `month` is its first day in UTC.

    Usage belongs to the tenant, not to a chat, so erasing a chat does not reduce it.
    """

    __tablename__ = "model_usage"
    __table_args__ = (
        CheckConstraint("extract(day FROM month) = 1", name="month"),
        CheckConstraint("failures BETWEEN 0 AND calls", name="failures"),
        CheckConstraint("prompt_tokens >= 0 AND completion_tokens >= 0", name="tokens"),
        CheckConstraint("wait_ms >= 0", name="wait_ms"),
        {"postgresql_with": {"fillfactor": 70}},
    )

    tenant: Mapped[str] = mapped_column(primary_key=True)
    month: Mapped[date] = mapped_column(primary_key=True)
    layer: Mapped[str] = mapped_column(primary_key=True)
    calls: Mapped[int] = mapped_column(BigInteger)
    failures: Mapped[int] = mapped_column(BigInteger)
    prompt_tokens: Mapped[int] = mapped_column(BigInteger)
    completion_tokens: Mapped[int] = mapped_column(BigInteger)
    wait_ms: Mapped[int] = mapped_column(BigInteger)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A completed call of the model, including its retries.

    Attributes:
        tenant, layer: The tenant and the layer to count for.
        asked_at: When the call began, by the service's clock; determines the month.
        failed: Whether the call returned no answer.
        prompt_tokens, completion_tokens: The tokens of the prompt and of the answer.
        wait_ms: The duration of the call in milliseconds, including the wait for a free slot.

    """

    tenant: str
    layer: str
    asked_at: datetime
    failed: bool
    prompt_tokens: int
    completion_tokens: int
    wait_ms: int


_USED_BY_WAITING = f"""
    WITH RECURSIVE {WAITING_TENANTS}
    SELECT waiting.tenant, sum(u.prompt_tokens + u.completion_tokens)::bigint AS used_tokens
    FROM waiting_tenants AS waiting JOIN model_usage u ON u.tenant = waiting.tenant AND u.month = $1
    GROUP BY waiting.tenant"""  # noqa: S608 - composed of constants


def month_of(at: datetime) -> date:
    """Return the first day of the month of `at`, an aware time, in UTC."""
    return at.astimezone(UTC).date().replace(day=1)


async def count_call(connection: Connection, call: ModelCall) -> None:
    """Add a call to the usage of its tenant, month and layer."""
    await connection.execute(
        """
        INSERT INTO model_usage AS u
            (tenant, month, layer, calls, failures, prompt_tokens, completion_tokens, wait_ms)
        VALUES ($1, $2, $3, 1, $4, $5, $6, $7)
        ON CONFLICT (tenant, month, layer) DO UPDATE SET
            calls = u.calls + excluded.calls, failures = u.failures + excluded.failures,
            prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
            completion_tokens = u.completion_tokens + excluded.completion_tokens,
            wait_ms = u.wait_ms + excluded.wait_ms
        """,
        call.tenant,
        month_of(call.asked_at),
        call.layer,
        int(call.failed),
        call.prompt_tokens,
        call.completion_tokens,
        call.wait_ms,
    )


async def count_or_warn(database: Database, call: ModelCall) -> None:
    """Add a call to the usage, in a statement of its own. If that fails, log a warning."""
    try:
        async with database.raw() as connection:
            await count_call(connection, call)
    except (Unavailable, asyncpg.PostgresError) as error:
        log.warning("a call of the model for %s was not counted: %s", call.layer, describe(error))


async def list_usage(connection: Connection, *, tenant: str, month: date) -> Sequence[asyncpg.Record]:
    """Return the usage of a tenant in one month: a row for each layer, sorted by layer."""
    return await connection.fetch(
        "SELECT layer, calls, failures, prompt_tokens, completion_tokens, wait_ms FROM model_usage"
        " WHERE tenant = $1 AND month = $2 ORDER BY layer",
        tenant,
        month,
    )


async def list_usage_ever(connection: Connection, *, month: date) -> Sequence[asyncpg.Record]:
    """Return the usage of all tenants over all months: a row for each tenant and layer.

    `month_tokens` counts the tokens of `month` only.
    """
    return await connection.fetch(
        """
        SELECT tenant, layer, sum(calls)::bigint AS calls, sum(failures)::bigint AS failures,
            sum(prompt_tokens)::bigint AS prompt_tokens, sum(completion_tokens)::bigint AS completion_tokens,
            sum(wait_ms)::bigint AS wait_ms,
            coalesce(sum(prompt_tokens + completion_tokens) FILTER (WHERE month = $1), 0)::bigint AS month_tokens
        FROM model_usage GROUP BY tenant, layer ORDER BY tenant, layer
        """,
        month,
    )


async def is_at_limit(connection: Connection, limits: TokenLimits, *, tenant: str, now: datetime) -> bool:
    """Return whether the tenant has reached its token limit for the current month."""
    if limits.limit_of(tenant) is None:
        return False
    used = await list_usage(connection, tenant=tenant, month=month_of(now))
    return limits.is_reached(tenant, sum(row["prompt_tokens"] + row["completion_tokens"] for row in used))


async def list_held_tenants(connection: Connection, limits: TokenLimits, *, now: datetime) -> list[str]:
    """Return the tenants whose waiting work is held, because their token limit for the current month is reached."""
    if not limits.limits_anyone():
        return []
    rows = await connection.fetch(_USED_BY_WAITING, month_of(now))
    return [row["tenant"] for row in rows if limits.is_reached(row["tenant"], row["used_tokens"])]
