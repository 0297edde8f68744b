"""Checks of Redis, the workers and the model: whether memory is being made."""

import asyncio
import re
from datetime import datetime
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from app.doctor.finding import Finding
from app.kit.db import Connection
from app.kit.limits import TokenLimits
from app.kit.llm.client import ModelClient, ModelError
from app.kit.usage import list_held_tenants
from app.kit.workers import SILENT_S, count_workers, find_lateness_s

REDIS_S: Final = 2.0

_ANSWER_TOKENS: Final = 200
"""Enough for a short answer. A model that reasons first may need more; its answer still shows that it works."""

_ADDRESS: Final = (
    "Check {prefix}_BASE_URL, which includes /v1. In a container, localhost is the container itself:"
    " use host.docker.internal."
)
_WHAT_TO_DO: Final = {
    "401": "Check {prefix}_API_KEY.",
    "402": "Add credit to the account of the model's provider.",
    "403": "Check {prefix}_API_KEY and {prefix}_MODEL.",
    "404": "Check {prefix}_MODEL, and {prefix}_BASE_URL, which includes /v1.",
    "429": "Wait, or lower {prefix}_CONCURRENCY.",
}


async def check_redis(url: str | None) -> Finding:
    """Check that Redis responds."""
    if url is None:
        return Finding(
            "redis", "note", "No Redis is configured: workers poll, and each API process counts requests for itself."
        )
    redis = Redis.from_url(url)
    try:
        async with asyncio.timeout(REDIS_S):
            await redis.ping()
    except (RedisError, OSError, TimeoutError) as error:
        # If Redis answers AUTH with an error, the client wraps that error in a connection error.
        if any(isinstance(cause, AuthenticationError | ResponseError) for cause in (error, error.__cause__)):
            return Finding(
                "redis", "fault", "Redis refuses the password.", "Correct the password in MEMOBOOK_REDIS_URL."
            )
        advice = "Check that Redis runs, and that MEMOBOOK_REDIS_URL has its address."
        return Finding("redis", "fault", "Redis is not reachable.", advice)
    finally:
        await redis.aclose(close_connection_pool=True)
    return Finding("redis", "ok", "Redis responds.")


async def check_workers(connection: Connection, *, now: datetime, limits: TokenLimits, late_s: float) -> Finding:
    """Check that a worker reports, and that no due work waits for longer than `late_s` seconds."""
    workers = await count_workers(connection)
    held = await list_held_tenants(connection, limits, now=now)
    waits_s = await find_lateness_s(connection, now=now, without=held)
    failed: int = await connection.fetchval("SELECT count(*) FROM work WHERE failed_at IS NOT NULL")
    if workers == 0:
        return Finding(
            "worker",
            "fault",
            f"No worker has reported within {SILENT_S:.0f} seconds.",
            "Start memobook worker, or read the log of the one that should run.",
        )
    message = f"Workers: {workers}."
    if waits_s > late_s:
        return Finding(
            "worker",
            "fault",
            f"{message} The oldest due work has waited for {waits_s:.0f} seconds.",
            "Read the log of the workers, and check the model; if both are well, start more workers.",
        )
    if failed:
        return Finding(
            "worker",
            "note",
            f"{message} Work that has failed for good: {failed}.",
            "GET /v1/work?status=failed shows why, and POST /v1/work/retry tries again.",
        )
    return Finding("worker", "ok", f"{message} No due work is late.")


async def check_model(client: ModelClient) -> Finding:
    """Ask the model for a word. A model that answers without a usable text works, too."""
    name = client.settings.model or client.model
    try:
        await client.complete([{"role": "user", "content": "Answer with the word OK."}], max_tokens=_ANSWER_TOKENS)
    except ModelError as error:
        if error.refusal is None:
            return judge_model_error(name, error)
    return Finding("model", "ok", f"{name} answers.")


def judge_model_error(name: str, error: ModelError, *, check: str = "model", prefix: str = "MEMOBOOK_LLM") -> Finding:
    """Return the finding of `check` for a model that does not answer; the names of its settings begin with `prefix`."""
    message = f"{name}: {error.reason}."
    status = re.search(r"\((\d{3})\)$", error.reason)
    if status is not None:
        code = status[1]
        advice = _WHAT_TO_DO.get(code, "Read the log of the model server.").format(prefix=prefix)
        return Finding(check, "note" if code == "429" else "fault", message, advice)
    if "within" in error.reason:
        advice = f"Check the load of the model server, or raise {prefix}_TIMEOUT_S."
        return Finding(check, "fault", message, advice)
    return Finding(check, "fault", message, _ADDRESS.format(prefix=prefix))
