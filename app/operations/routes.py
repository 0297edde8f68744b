"""HTTP of operations."""

import asyncio
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import asyncpg
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.kit.auth import Admin, Forbidden, Reader, Writer
from app.kit.db import defer
from app.kit.deps import Db, Now, Pool
from app.kit.errors import NotFound, Unavailable
from app.kit.ids import chat_key
from app.kit.limits import UNLIMITED, TokenLimits
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.settings import Settings
from app.kit.usage import is_at_limit, list_usage, list_usage_ever, month_of
from app.kit.wire import JsonAnswer
from app.kit.work import Bell
from app.operations import queries
from app.operations.metrics import MEDIA_TYPE, write_metrics
from app.operations.revisions import is_migrated
from app.operations.schemas import Health, Readiness, UsageOut, WorkOut

router = APIRouter(tags=["operations"])


async def holding_limits(request: Request) -> TokenLimits:
    """The limits that hold work back: none without a model, as nothing uses tokens then."""
    settings: Settings = request.app.state.settings
    return settings.token_limits if settings.llm_base_url else UNLIMITED


Holding = Annotated[TokenLimits, Depends(holding_limits)]


class WorkNotFound(NotFound):
    """There is no such due work."""

    code = "work_not_found"
    title = "Unknown work"


@router.get("/healthz", response_model=Health)
async def healthz() -> Response:
    """The process lives."""
    return JsonAnswer({"status": "ok"})


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness}})
async def readyz(request: Request, pool: Pool) -> Response:
    """PostgreSQL and its schema are there; Redis and the model are only reported."""
    settings: Settings = request.app.state.settings
    bell: Bell = request.app.state.bell
    database = "ok"
    try:
        async with pool.raw() as connection:
            if not await is_migrated(connection):
                database = "not migrated"
    except Unavailable:
        database = "down"
    redis = "not configured" if settings.redis_url is None else "ok" if await bell.is_reachable() else "down"
    model = "configured" if settings.llm_base_url else "not configured"
    status = "down" if database != "ok" else "ok" if redis == "ok" and model == "configured" else "degraded"
    return JsonAnswer(
        {"status": status, "database": database, "redis": redis, "model": model},
        status_code=503 if database != "ok" else 200,
    )


@router.get("/v1/work", response_model=Page[WorkOut])
async def list_work(
    caller: Reader,
    db_session: Db,
    clock: Now,
    limits: Holding,
    status: Annotated[queries.Status | None, Query(description="Only what stands so.")] = None,
    chat_id: Annotated[str | None, Query(max_length=200, description="Only this chat's.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """What is waiting to be made, being made, or has failed for good."""
    after = decode_cursor(cursor, UUID)[0] if cursor else None
    wanted = caller.chat_id or chat_id
    if caller.chat_id and chat_id not in (None, caller.chat_id):
        return JsonAnswer({"items": [], "next_cursor": None})
    rows = await queries.list_work(
        db_session,
        tenant=caller.tenant,
        status=status,
        only_chat=chat_key(caller.tenant, wanted) if wanted else None,
        only_user=caller.user_id,
        after=after,
        limit=limit + 1,
    )
    held = await is_at_limit(db_session.raw, limits, tenant=caller.tenant, now=clock())
    items = [_work_out(row, held=held) for row in rows[:limit]]
    return JsonAnswer({"items": items, "next_cursor": encode_cursor(items[-1]["id"]) if len(rows) > limit else None})


@router.post("/v1/work/{work_id}/retry", status_code=202, response_class=Response)
async def retry_work(
    work_id: Annotated[UUID, Path(description="The id of the work.")],
    caller: Writer,
    db_session: Db,
    clock: Now,
) -> Response:
    """Try something again now, as if for the first time."""
    only_chat = chat_key(caller.tenant, caller.chat_id) if caller.chat_id else None
    found = await queries.retry_work(
        db_session,
        tenant=caller.tenant,
        work_id=work_id,
        only_chat=only_chat,
        only_user=caller.user_id,
        now=clock(),
    )
    if not found:
        raise WorkNotFound(f"There is no due work {str(work_id)!r}.")
    defer(db_session, "work_due", None)
    return Response(status_code=202)


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
            description="A calendar month in UTC, such as `2026-04`; without it the current one.",
        ),
    ] = None,
) -> Response:
    """What the model was used for in a month: calls, tokens and waiting time of the tenant, layer by layer."""
    if caller.user_id is not None or caller.chat_id is not None:
        raise Forbidden("Usage is counted for the whole tenant; a token that is limited to a user or chat sees none.")
    settings: Settings = request.app.state.settings
    first_day = date.fromisoformat(f"{month}-01") if month else month_of(clock())
    async with pool.raw() as connection:
        rows = await list_usage(connection, tenant=caller.tenant, month=first_day)
    return JsonAnswer(
        {
            "month": f"{first_day:%Y-%m}",
            "limit_tokens": settings.token_limits.limit_of(caller.tenant),
            "used_tokens": sum(row["prompt_tokens"] + row["completion_tokens"] for row in rows),
            "items": [_layer_usage(row) for row in rows],
        }
    )


@router.get("/metrics", include_in_schema=False)  # of the service itself, in no JSON: a scraper's, not a client's
async def metrics(request: Request, _caller: Admin, pool: Pool, clock: Now, limits: Holding) -> Response:
    """What Prometheus scrapes, of all tenants: it needs the scope `admin`. The same from every process of the API."""
    async with pool.raw() as connection:
        usage = await list_usage_ever(connection, month=month_of(clock()))
        work = await queries.count_work(connection)
    text = await asyncio.to_thread(  # thousands of tenants take longer than a loop may wait
        write_metrics,
        usage=usage,
        work=work,
        layers=[layer.NAME for layer in request.app.state.layers],
        limits=limits,
        version=request.app.version,
    )
    return Response(text, headers={"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"})


def _layer_usage(row: asyncpg.Record) -> dict[str, Any]:
    counted = ("layer", "calls", "failures", "prompt_tokens", "completion_tokens")
    return {name: row[name] for name in counted} | {"wait_s": row["wait_ms"] / 1_000}


def _work_out(row: Any, *, held: bool) -> dict[str, Any]:
    """A row, with the reason that holds it if it is due and its tenant at its limit."""
    work = row.Work
    status = "failed" if work.failed_at else "running" if row.leased else "due"
    return {
        "id": work.work_id,
        "chat_id": row.chat_id,
        "layer": work.layer,
        "key": work.key,
        "status": status,
        "held": "monthly_token_limit" if held and status == "due" else None,
        "attempts": work.attempts,
        "error": work.error,
        "run_after": work.run_after,
        "failed_at": work.failed_at,
    }
