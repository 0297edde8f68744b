"""Tenants with a monthly limit of tokens: their workers, and processes of the API that know the limit."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit.clock import Clock, SteppedClock
from app.kit.db import Database
from app.kit.job_context import JobContext
from app.kit.limits import TokenLimits
from app.kit.llm.client import ModelClient
from app.kit.settings import Settings
from app.main import create_app
from app.registry import LAYERS
from tests.conftest import NOON, client_of
from tests.scripted_model import ScriptedModel
from tests.slowness import SLOWNESS

CALL_TOKENS = 150
"""What the scripted model says that each of its answers took, prompt and answer together."""


@asynccontextmanager
async def limited_worker(
    database: Database, clock: Clock, model: ScriptedModel, limits: TokenLimits, *, slots: int = 1
) -> AsyncIterator[Dispatcher]:
    """A worker that knows the limits."""
    client = ModelClient(model.base_url, "scripted", timeout_s=5 * SLOWNESS, concurrency=slots, max_attempts=1)
    try:
        yield Dispatcher(JobContext(database, clock, client), LAYERS, slots=slots, poll_s=3_600, limits=limits)
    finally:
        await client.aclose()


@asynccontextmanager
async def limited_api(
    database_url: str, clock: SteppedClock, key: str | None, limits: TokenLimits, *, kind: str | None = "llm"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a process that knows the limits, and a model of the kind that the settings' names begin with."""
    model = {f"{kind}_base_url": "http://localhost:1/v1", f"{kind}_model": "scripted"} if kind else {}
    settings = Settings(
        database_url=database_url,
        tenant_monthly_tokens=limits.default,
        tenant_monthly_tokens_of=dict(limits.of),
        _env_file=None,
        **model,  # type: ignore[arg-type]  # converted by the model
    )
    app = create_app(settings, clock=clock)
    async with client_of(app, key) as client:
        yield client
    await app.state.database.close()


async def make_key(database: Database, tenant: str, *scopes: str) -> str:
    """The text of a new key."""
    async with database.unit_of_work() as db_session:
        return (await create_key(db_session, tenant, scopes, NOON)).text
