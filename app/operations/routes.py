"""HTTP routes of operations."""

import asyncio
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import asyncpg
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app import RELEASE
from app.kit.auth import Admin, Forbidden, KeyedRoute, Reader, Writer
from app.kit.deps import Db, Now, Pool
from app.kit.limits import TokenLimits
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.settings import Settings
from app.kit.usage import is_at_limit, list_held_tenants, list_usage, list_usage_ever, month_of
from app.kit.wire import OrjsonResponse
from app.kit.worker_notifier import WorkerNotifier
from app.kit.workers import count_workers, find_lateness_s
from app.operations import queries, service
from app.operations.metrics import MEDIA_TYPE, write_metrics
from app.operations.readiness import RedisState, check_redis
from app.operations.schemas import (
    Health,
    Readiness,
    RetriedOut,
    RetryFailed,
    UsageOut,
    WorkAccepted,
    WorkOut,
)

router = APIRouter(tags=["operations"], route_class=KeyedRoute)


async def holding_limits(request: Request) -> TokenLimits:
    """Return the token limits that hold work back (`Settings.holding_limits`)."""
    settings: Settings = request.app.state.settings
    return settings.holding_limits


Holding = Annotated[TokenLimits, Depends(holding_limits)]
WorkId = Annotated[UUID, Path(description="The id of the work item.")]


@router.get("/healthz", response_model=Health)
async def healthz() -> Response:
    """Check that the process responds."""
    return OrjsonResponse({"status": "ok", "version": RELEASE})


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
async def readyz(request: Request, pool: Pool, clock: Now, limits: Holding) -> Response:
    """Check whether requests can be served. Answers within two seconds.

    Returns 503 if PostgreSQL is unreachable, is not migrated, or cannot write, or if too many requests of this process
    wait for a connection. If Redis or a worker is missing, no model is configured, or due work is late, the status is
    `degraded`, but the answer is a 200.
    """
    settings: Settings = request.app.state.settings
    report, redis = await asyncio.gather(
        request.app.state.database_checks.report(pool, now=clock(), limits=limits),
        _check_redis(request.app.state.notifier, settings),
    )
    ready = Readiness(
        status="down",
        database=report.state,
        redis=redis,
        model="configured" if settings.llm_base_url else "not configured",
        worker="ok" if report.workers else "none",
        work="late" if report.lateness_s > settings.work_late_s else "on time",
    )
    if report.state == "ok":
        fine = (ready.redis, ready.model, ready.worker, ready.work) == ("ok", "configured", "ok", "on time")
        ready.status = "ok" if fine else "degraded"
    return OrjsonResponse(ready.model_dump(), status_code=503 if ready.status == "down" else 200)


async def _check_redis(notifier: WorkerNotifier, settings: Settings) -> RedisState:
    return "not configured" if settings.redis_url is None else await check_redis(notifier)


@router.get("/v1/work", response_model=Page[WorkOut])
async def list_work(
    caller: Reader,
    db_session: Db,
    clock: Now,
    limits: Holding,
    status: Annotated[queries.Status | None, Query(description="Only items with this status.")] = None,
    chat_id: Annotated[str | None, Query(max_length=200, description="Only items of this chat.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List background work that is due, running or failed.

    Finished work is deleted. A token sees only the work of its user or chat.
    """
    after = decode_cursor(cursor, UUID)[0] if cursor else None
    rows = await queries.list_work(db_session, caller, status=status, chat_id=chat_id, after=after, limit=limit + 1)
    held = await is_at_limit(db_session.raw, limits, tenant=caller.tenant, now=clock())
    items = [_work_out(row, held=held) for row in rows[:limit]]
    return OrjsonResponse(
        {"items": items, "next_cursor": encode_cursor(items[-1]["id"]) if len(rows) > limit else None}
    )


@router.get("/v1/work/{work_id}", response_model=WorkOut)
async def read_work(work_id: WorkId, caller: Reader, db_session: Db, clock: Now, limits: Holding) -> Response:
    """Read one item of background work. Returns 404 once the work is finished."""
    row = await service.get_work(db_session, caller, work_id)
    held = await is_at_limit(db_session.raw, limits, tenant=caller.tenant, now=clock())
    return OrjsonResponse(_work_out(row, held=held))


@router.post("/v1/work/{work_id}/retry", status_code=202, response_model=WorkAccepted)
async def retry_work(work_id: WorkId, caller: Writer, pool: Pool, clock: Now) -> Response:
    """Retry one item now. Its attempts are counted from zero again, and the result of a running attempt is dropped."""
    await service.retry_work(pool, caller, work_id, now=clock())
    return OrjsonResponse({"work_id": work_id}, status_code=202)


@router.post("/v1/work/retry", response_model=RetriedOut)
async def retry_failed_work(caller: Writer, pool: Pool, clock: Now, wanted: RetryFailed | None = None) -> Response:
    """Retry all failed work, or only that of one layer or chat."""
    wanted = wanted or RetryFailed()
    retried = await service.retry_failed(pool, caller, layer=wanted.layer, chat_id=wanted.chat_id, now=clock())
    return OrjsonResponse({"retried": retried})


@router.get("/v1/usage", response_model=UsageOut)
async def read_usage(
    request: Request,
    caller: Reader,
    pool: Pool,
    clock: Now,
    month: Annotated[
        str | None,
        Query(
            pattern=r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])$",
            description="A month in UTC, such as `2026-04`; by default the current one.",
        ),
    ] = None,
) -> Response:
    """Read the tenant's usage of the model in a month, by layer."""
    if caller.user_id is not None or caller.chat_id is not None:
        raise Forbidden("Usage covers the whole tenant; a token limited to a user or chat cannot read it. Use a key.")
    settings: Settings = request.app.state.settings
    first_day = date.fromisoformat(f"{month}-01") if month else month_of(clock())
    async with pool.raw() as connection:
        rows = await list_usage(connection, tenant=caller.tenant, month=first_day)
    return OrjsonResponse(
        {
            "month": f"{first_day:%Y-%m}",
            "limit_tokens": settings.token_limits.limit_of(caller.tenant),
            "used_tokens": sum(row["prompt_tokens"] + row["completion_tokens"] for row in rows),
            "items": [_layer_usage(row) for row in rows],
        }
    )


@router.get("/metrics", include_in_schema=False)  # for scrapers, not for clients of the API
async def metrics(request: Request, _caller: Admin, pool: Pool, clock: Now, limits: Holding) -> Response:
    """Return the metrics for Prometheus. They cover all tenants, so the scope `admin` is required."""
    async with pool.raw() as connection:
        usage = await list_usage_ever(connection, month=month_of(clock()))
        work = await queries.count_work(connection)
        held = await list_held_tenants(connection, limits, now=clock())
        lateness_s = await find_lateness_s(connection, now=clock(), without=held)
        workers = await count_workers(connection)
    text = await asyncio.to_thread(  # with thousands of tenants this would block the event loop for too long
        write_metrics,
        usage=usage,
        work=work,
        layers=[layer.name for layer in request.app.state.layers],
        limits=limits,
        workers=workers,
        lateness_s=lateness_s,
        version=request.app.version,
        gate=pool.gate.counts,
        waiting=pool.gate.waiting,
        rate_limited=request.app.state.rate_limiter.refusals,
    )
    return Response(text, headers={"Content-Type": MEDIA_TYPE})


def _layer_usage(row: asyncpg.Record) -> dict[str, Any]:
    counted = ("layer", "calls", "failures", "prompt_tokens", "completion_tokens")
    return {name: row[name] for name in counted} | {"wait_s": row["wait_ms"] / 1_000}


def _work_out(row: Any, *, held: bool) -> dict[str, Any]:
    """Return an item as the API shows it; `held` is whether its tenant has reached its limit."""
    work = row.WorkItem
    status = "failed" if work.failed_at else "running" if row.leased else "due"
    return {
        "id": work.work_id,
        "chat_id": row.chat_id,
        "user_id": row.user_id,
        "layer": work.layer,
        "status": status,
        "held": "monthly_token_limit" if held and status == "due" else None,
        "attempts": work.attempts,
        "error": work.error,
        "refusals": work.refusals,
        "run_after": work.run_after,
        "failed_at": work.failed_at,
    }
