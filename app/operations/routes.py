"""HTTP of operations."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response

from app.kit.auth import Reader, Writer
from app.kit.db import defer
from app.kit.deps import Db, Now, Pool
from app.kit.errors import NotFound, Unavailable
from app.kit.ids import chat_key
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.settings import Settings
from app.kit.wire import JsonAnswer
from app.kit.work import Bell
from app.operations import queries
from app.operations.revisions import is_migrated
from app.operations.schemas import Health, Readiness, WorkOut

router = APIRouter(tags=["operations"])


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
    items = [_work_out(row) for row in rows[:limit]]
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


def _work_out(row: Any) -> dict[str, Any]:
    work = row.Work
    return {
        "id": work.work_id,
        "chat_id": row.chat_id,
        "layer": work.layer,
        "key": work.key,
        "status": "failed" if work.failed_at else "running" if row.leased else "due",
        "attempts": work.attempts,
        "error": work.error,
        "run_after": work.run_after,
        "failed_at": work.failed_at,
    }
