"""The worker process: the dispatcher, and an arq worker that wakes it.

The arq worker waits for Redis when it starts, and exits when Redis fails. So it runs in a task of its own, and is
restarted after a failure. The dispatcher does not depend on it.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

import orjson
from arq import ArqRedis, create_pool
from arq.worker import Worker, func
from redis.exceptions import RedisError

from app.dispatcher import Dispatcher
from app.embeddings.configured import make_embedder
from app.kit.clock import system_clock
from app.kit.job_context import JobContext, PromptTemplate
from app.kit.llm.client import ModelClient
from app.kit.settings import Settings
from app.kit.worker_notifier import WAKE, redis_settings
from app.pipeline import open_database
from app.registry import LAYERS

log = logging.getLogger(__name__)

ARQ_POLL_S = 0.2
MAX_RECONNECT_S = 10.0
CLOSE_S = 2.0


async def wake_dispatcher(ctx: dict[str, Any]) -> None:
    """Wake the dispatcher. This is the arq job."""
    dispatcher: Dispatcher = ctx["dispatcher"]
    dispatcher.wake()


def make_model(settings: Settings) -> ModelClient | None:
    """Return the model's client, or None if no model is configured."""
    if settings.llm_base_url is None or settings.llm_model is None:
        return None
    return ModelClient(
        settings.llm_base_url,
        settings.llm_model,
        api_key=settings.llm_api_key.get_secret_value() if settings.llm_api_key else None,
        timeout_s=settings.llm_timeout_s,
        concurrency=settings.llm_concurrency,
        context_tokens=settings.llm_context_tokens,
        settings=settings.requests,
    )


async def run_worker(
    settings: Settings,
    prompts: Mapping[str, PromptTemplate] | None = None,
    stop: asyncio.Event | None = None,
    *,
    worker_id: UUID | None = None,
) -> None:
    """Run until cancelled, or until `stop` is set.

    After `stop`, running items can end within the grace time of the settings. `prompts` replace the built-in prompts of
    the same names. `worker_id` is the id under which the worker reports; None for a new one.
    """
    stop = stop or asyncio.Event()
    model, embedder = make_model(settings), make_embedder(settings)
    database = open_database(
        settings.sqlalchemy_url,
        LAYERS,
        clock=system_clock,
        settle_s=settings.settle_s,
        notify=lambda: dispatcher.wake(),
        pool_size=settings.llm_concurrency + 4,
        statement_s=settings.database_timeout_s,
        with_vectors=embedder is not None,
    )
    layer_models = {layer: model.with_settings(of) for layer, of in settings.requests_of.items()} if model else {}
    ctx = JobContext(database, system_clock, model, prompts or {}, layer_models, embedder)
    dispatcher = Dispatcher(
        ctx,
        LAYERS,
        slots=settings.llm_concurrency,
        poll_s=settings.poll_s,
        limits=settings.token_limits,
        worker_id=worker_id,
        grace_s=settings.stop_grace_s,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(dispatcher.run())
            listening = tasks.create_task(listen(settings.redis_url, dispatcher)) if settings.redis_url else None
            await stop.wait()
            log.info("the worker stops")
            if listening:  # it would take notifications that another worker needs
                listening.cancel()
            dispatcher.stop()
    finally:
        if model:
            await model.aclose()
        if embedder:
            await embedder.aclose()
        await database.close()


async def listen(redis_url: str, dispatcher: Dispatcher) -> None:
    """Wake the dispatcher on every notification, and reconnect after each failure of Redis."""
    wait_s = 0.5
    while True:
        started_s = asyncio.get_running_loop().time()
        try:
            await _run_arq(redis_url, dispatcher)
        except (RedisError, OSError, TimeoutError) as error:
            log.info("Redis is unavailable (%s); the worker polls without it", type(error).__name__)
        lived = asyncio.get_running_loop().time() - started_s > MAX_RECONNECT_S
        wait_s = 0.5 if lived else min(2 * wait_s, MAX_RECONNECT_S)
        await asyncio.sleep(wait_s)
        dispatcher.wake()


async def _run_arq(redis_url: str, dispatcher: Dispatcher) -> None:
    """Run an arq worker until Redis fails. Raises the error of the failure."""
    redis = await create_pool(redis_settings(redis_url))
    worker = Worker(
        [func(wake_dispatcher, name=WAKE, max_tries=1)],
        redis_pool=redis,
        handle_signals=False,
        keep_result=0,
        log_results=False,
        poll_delay=ARQ_POLL_S,
        job_serializer=orjson.dumps,
        job_deserializer=orjson.loads,
        ctx={"dispatcher": dispatcher},
    )
    try:
        await worker.main()
    finally:
        await _close_arq(worker, redis)


async def _close_arq(worker: Worker, redis: ArqRedis) -> None:
    """Close arq's connections.

    arq's own `Worker.close` is not used: it waits for Redis to answer, and it awaits the jobs that it has cancelled, so
    their CancelledError ends `close` itself.
    """
    jobs = worker.tasks.values()
    for job in jobs:
        job.cancel()
    with suppress(RedisError, OSError, TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            await redis.aclose(close_connection_pool=True)
            await asyncio.gather(*jobs, return_exceptions=True)
