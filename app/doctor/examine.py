"""Runs all checks of an installation."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg

from app.doctor.access import check_keys
from app.doctor.background import check_model, check_redis, check_workers
from app.doctor.clocks import check_clocks
from app.doctor.database import check_locale, check_permissions, check_server, judge_unavailable
from app.doctor.disk import check_disk
from app.doctor.embeddings import check_embeddings
from app.doctor.finding import Finding
from app.doctor.schema import check_schema
from app.kit.clock import Clock
from app.kit.db import Connection, Database
from app.kit.errors import Unavailable
from app.kit.settings import Settings
from app.worker import make_model

STATEMENT_S: Final = 5.0
MODEL_S: Final = 30.0
"""The longest wait for an answer of the model."""

Check = Callable[[Connection], Awaitable[Finding]]


@dataclass(frozen=True, slots=True)
class Installation:
    """The locations of the parts of an installation.

    Attributes:
        database_url: The database for SQLAlchemy, or None if none is known.
        redis_url: Redis, or None if none is known.
        data: The data directory of an embedded database on this machine; None if the database is elsewhere.
        is_public: Whether the API is to listen on an address that other machines reach.

    """

    database_url: str | None
    redis_url: str | None
    data: Path | None
    is_public: bool


async def examine(settings: Settings, installation: Installation, clock: Clock) -> list[Finding]:
    """Run all checks, in the order in which their faults should be corrected. Changes nothing."""
    found = [Finding("settings", "ok", "The settings are valid.")]
    found += await _examine_database(settings, installation, clock)
    found.insert(_index_of(found, "worker"), await check_redis(installation.redis_url))
    return found + await _examine_models(settings)


def _patient(settings: Settings) -> Settings:
    """Return the settings with time limits of at most `MODEL_S` for the models."""
    limits = {name: min(getattr(settings, name), MODEL_S) for name in ("llm_timeout_s", "embeddings_timeout_s")}
    return settings.model_copy(update=limits)


def _index_of(found: list[Finding], check: str) -> int:
    return [finding.check for finding in found].index(check)


async def _examine_database(settings: Settings, installation: Installation, clock: Clock) -> list[Finding]:
    """Run the checks that need the database; if it cannot be used, return one fault, and each check as skipped."""
    checks: dict[str, Check] = {
        "locale": lambda connection: check_locale(connection, is_embedded=installation.data is not None),
        "permissions": check_permissions,
        "schema": check_schema,
        "disk": lambda connection: check_disk(connection, installation.data),
        "clock": lambda connection: check_clocks(connection, clock),
        "keys": lambda connection: check_keys(connection, settings, is_public=installation.is_public),
        "worker": lambda connection: check_workers(
            connection, now=clock(), limits=settings.holding_limits, late_s=settings.work_late_s
        ),
        "embeddings": lambda connection: check_embeddings(connection, _patient(settings)),
    }
    skipped = [Finding(name, "skipped", "Not checked, because the database cannot be used.") for name in checks]
    if installation.database_url is None:
        advice = "Set it, or start memobook up, which has a database of its own."
        return [Finding("database", "fault", "MEMOBOOK_DATABASE_URL is not set.", advice), *skipped]
    database = Database(installation.database_url, pool_size=2, statement_s=STATEMENT_S)
    try:
        async with database.raw() as connection:
            found = [await check_server(connection)]
            found += [await _run(name, check, connection) for name, check in checks.items()]
            return found
    except Unavailable as error:
        return [judge_unavailable(error), *skipped]
    finally:
        await database.close()


async def _run(name: str, check: Check, connection: Connection) -> Finding:
    """Run a check. An error of PostgreSQL becomes a finding: usually a table or a permission is missing."""
    try:
        return await check(connection)
    except asyncpg.UndefinedTableError:
        return Finding(name, "skipped", "Not checked, because the database is not migrated.")
    except asyncpg.PostgresError as error:
        advice = "See the checks of the permissions and the schema."
        return Finding(name, "fault", f"PostgreSQL refuses the check ({error.sqlstate}).", advice)


async def _examine_models(settings: Settings) -> list[Finding]:
    """Check each language model that the settings name."""
    client = make_model(_patient(settings))
    if client is None:
        return [Finding("model", "note", "No model is configured: memories are quoted from the messages.")]
    try:
        clients = {client.model: client}
        for of_layer in settings.requests_of.values():
            if of_layer.model is not None and of_layer.model not in clients:
                clients[of_layer.model] = client.with_settings(of_layer)
        return [await check_model(asked) for asked in clients.values()]
    finally:
        await client.aclose()
