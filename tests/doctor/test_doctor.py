"""What `memobook doctor` finds, with real servers in each broken state."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from app.doctor.disk import judge_space
from app.doctor.examine import Installation, examine
from app.doctor.finding import Finding
from app.kit import workers
from app.kit.clock import Clock, SteppedClock, system_clock
from app.kit.settings import Settings
from app.kit.usage import ModelCall, count_call
from app.local.address import free_port
from app.local.running import Urls
from app.main import create_app
from app.migrate import migrate
from tests.conftest import client_of, sqlalchemy_url
from tests.proxies import FreezingProxy
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.scripted_model import HANG_UP, Reply, ScriptedModel, refuses, says
from tests.talk import append, talk

ADMIN = "an-admin-key-of-at-least-32-characters"
OF_DATABASE = ["locale", "permissions", "schema", "disk", "clock", "keys"]
CHECKS = ["settings", "database", *OF_DATABASE, "redis", "worker", "embeddings", "model"]


async def findings(
    database_url: str | None,
    *,
    redis_url: str | None = None,
    is_public: bool = False,
    clock: Clock = system_clock,
    **settings: object,
) -> dict[str, Finding]:
    """What the doctor says, by check."""
    chosen = Settings(database_url=database_url, redis_url=redis_url, _env_file=None, **settings)  # type: ignore[arg-type]
    installation = Installation(
        database_url and sqlalchemy_url(database_url), redis_url, data=None, is_public=is_public
    )
    return {finding.check: finding for finding in await examine(chosen, installation, clock)}


@pytest.fixture
async def raw(fresh_database_url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection to the test's own database."""
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    yield connection
    await connection.close()


def assert_fault(finding: Finding, message: str, advice: str) -> None:
    assert (finding.state, finding.message) == ("fault", message)
    assert advice in finding.advice


async def test_nothing_is_wrong_with_a_whole_service(
    fresh_database_url: str,
    servers: Urls,
    model: ScriptedModel,
    raw: "asyncpg.Connection[asyncpg.Record]",
) -> None:
    await workers.report(raw, uuid4())
    model.otherwise = "OK"
    async with ScriptedEmbeddings() as embeddings:
        found = await findings(
            fresh_database_url,
            redis_url=servers.redis_url,
            llm_base_url=model.base_url,
            llm_model="scripted",
            embeddings_base_url=embeddings.base_url,
            embeddings_model="tiny",
        )
    assert found["embeddings"].message == "tiny returns vectors with 64 dimensions."
    assert list(found) == CHECKS
    states = {check: finding.state for check, finding in found.items()}
    assert states.pop("keys") == "note", "no key: a statement"
    assert set(states.values()) == {"ok"}, found
    assert found["database"].message.startswith("PostgreSQL 18")
    assert "UTF8" in found["database"].message
    assert len(model.requests) == 1


async def test_a_missing_model_or_redis_is_only_a_note(fresh_database_url: str) -> None:
    found = await findings(fresh_database_url)
    assert {check: found[check].state for check in ("keys", "redis", "embeddings", "model")} == {
        "keys": "note",
        "embeddings": "note",
        "redis": "note",
        "model": "note",
    }


# --- the database ---------------------------------------------------------------------------------


async def test_without_a_database_the_rest_is_not_checked() -> None:
    found = await findings(None)
    assert_fault(found["database"], "MEMOBOOK_DATABASE_URL is not set.", "memobook up")
    assert {found[check].state for check in (*OF_DATABASE, "worker")} == {"skipped"}


async def test_a_database_that_cannot_be_used_is_named(servers: Urls, short_path: Path) -> None:
    head, query = servers.database_url.split("?", 1)
    missing = await findings(f"{head.rsplit('/', 1)[0]}/nothing?{query}")
    assert_fault(missing["database"], "The database does not exist.", "MEMOBOOK_DATABASE_URL")
    away = await findings(f"postgresql+asyncpg://memobook:hunter2@/memobook?host={short_path}")
    assert_fault(away["database"], "The database is not reachable.", "MEMOBOOK_DATABASE_URL")
    refused = await findings(servers.database_url.replace("memobook:", "memobook:x", 1))
    assert_fault(refused["database"], "The database rejects the configured credentials.", "MEMOBOOK_DATABASE_URL")


async def test_a_frozen_database_is_found_in_time(fresh_database_url: str, short_path: Path) -> None:
    async with FreezingProxy(fresh_database_url, short_path) as proxy:
        proxy.freeze()
        found = await findings(proxy.url)
        proxy.thaw()
        assert_fault(found["database"], "The database does not answer in time.", "PostgreSQL")


async def test_a_read_only_database_is_a_fault(
    fresh_database_url: str, raw: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    name = await raw.fetchval("SELECT current_database()")
    await raw.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert_fault((await findings(fresh_database_url))["database"], "The database is read-only.", "primary")


async def test_another_encoding_is_a_fault(servers: Urls) -> None:
    connection = await asyncpg.connect(servers.database_url.replace("+asyncpg", ""))
    name = f"latin_{uuid4().hex}"
    await connection.execute(
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
    )
    await connection.close()
    head, query = servers.database_url.split("?", 1)
    found = await findings(f"{head.rsplit('/', 1)[0]}/{name}?{query}")
    assert_fault(found["database"], "The database's encoding is LATIN1.", "UTF8")
    assert_fault(found["schema"], "The database is not migrated.", "memobook migrate")


async def test_a_locale_without_letters_is_a_note(servers: Urls, tmp_path: Path) -> None:
    connection = await asyncpg.connect(servers.database_url.replace("+asyncpg", ""))
    name = f"ascii_{uuid4().hex}"
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 LC_CTYPE 'C'")
    await connection.close()
    head, query = servers.database_url.split("?", 1)
    url = f"{head.rsplit('/', 1)[0]}/{name}?{query}"
    found = (await findings(url))["locale"]
    assert (found.state, found.message) == (
        "note",
        "With the LC_CTYPE C, full text search and pg_trgm know no letters outside ASCII.",
    )
    assert "docs/deploy.md" in found.advice
    installation = Installation(sqlalchemy_url(url), None, data=tmp_path, is_public=False)
    embedded = await examine(Settings(database_url=url, _env_file=None), installation, system_clock)
    assert next(finding.advice for finding in embedded if finding.check == "locale").startswith("Restart memobook up")


async def test_missing_permissions_name_the_tables(
    fresh_database_url: str, raw: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    await raw.execute("REVOKE INSERT ON messages FROM CURRENT_USER; REVOKE SELECT ON alembic_version FROM CURRENT_USER")
    found = await findings(fresh_database_url)
    assert_fault(
        found["permissions"], "The role may not read and change these tables: alembic_version, messages.", "GRANT"
    )
    assert_fault(found["schema"], "PostgreSQL refuses the check (42501).", "permissions")


async def test_an_old_schema_says_what_to_run(
    fresh_database_url: str, raw: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    newest = await raw.fetchval("SELECT version_num FROM alembic_version")
    assert newest in (await findings(fresh_database_url))["schema"].message
    await asyncio.to_thread(migrate, sqlalchemy_url(fresh_database_url), "-1")
    old = await raw.fetchval("SELECT version_num FROM alembic_version")
    found = (await findings(fresh_database_url))["schema"]
    assert_fault(found, f"The schema is at revision {old}; this version needs {newest}.", "memobook migrate")
    await raw.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")
    found = (await findings(fresh_database_url))["schema"]
    assert (found.state, found.message) == ("note", "The schema is of another version: revision ffffffffffff.")


@pytest.mark.parametrize("step_s", [-3_600, 3_600])
async def test_a_clock_that_differs_is_a_fault(fresh_database_url: str, step_s: float) -> None:
    clock = SteppedClock(system_clock() + timedelta(seconds=step_s))
    settings = Settings(database_url=fresh_database_url, _env_file=None)
    installation = Installation(sqlalchemy_url(fresh_database_url), None, data=None, is_public=False)
    found = {finding.check: finding for finding in await examine(settings, installation, clock)}
    assert found["clock"].state == "fault"
    assert ("behind" if step_s > 0 else "ahead") in found["clock"].message
    assert "NTP" in found["clock"].advice


def test_little_space_is_a_fault() -> None:
    gib = 1 << 30
    assert judge_space(free_bytes=50 * gib, total_bytes=100 * gib, size_bytes=gib).state == "ok"
    assert_fault(
        judge_space(free_bytes=gib // 4, total_bytes=100 * gib, size_bytes=gib),
        "0.2 GiB of 100.0 GiB are free; the database takes 1.0 GiB.",
        "disk",
    )


async def test_the_disk_of_an_embedded_database_is_known(fresh_database_url: str, tmp_path: Path) -> None:
    settings = Settings(database_url=fresh_database_url, _env_file=None)
    installation = Installation(sqlalchemy_url(fresh_database_url), None, data=tmp_path, is_public=False)
    found = {finding.check: finding for finding in await examine(settings, installation, system_clock)}
    assert "are free" in found["disk"].message
    elsewhere = (await findings(fresh_database_url))["disk"].message
    assert re.fullmatch(r"The database takes \d+\.\d GiB\. The free space of its server is not visible.*", elsewhere)


# --- keys, Redis, workers -------------------------------------------------------------------------


async def test_a_public_address_needs_a_key(fresh_database_url: str) -> None:
    found = await findings(fresh_database_url, is_public=True)
    assert_fault(found["keys"], "There is no key, and the API is to listen on a public address.", "MEMOBOOK_ADMIN_KEY")
    short = await findings(fresh_database_url, admin_key="too-short")
    assert_fault(short["keys"], "MEMOBOOK_ADMIN_KEY is too short or cannot be sent in a header.", "32")
    assert (await findings(fresh_database_url, is_public=True, admin_key=ADMIN))["keys"].state == "ok"


async def test_keys_without_an_admin_are_noted(
    fresh_database_url: str, raw: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    insert = "INSERT INTO keys (key_id, tenant, scopes, secret_hash, created_at) VALUES ($1, 't', $2, $3, now())"
    await raw.execute(insert, "k1", ["read"], b"\0" * 32)
    found = (await findings(fresh_database_url))["keys"]
    assert (found.state, found.message) == ("note", "No key with the scope admin is valid.")
    await raw.execute(insert, "k2", ["admin"], b"\1" * 32)
    assert (await findings(fresh_database_url))["keys"].state == "ok"


async def test_a_redis_that_is_down_is_a_fault(fresh_database_url: str) -> None:
    port = free_port("127.0.0.1", 0)
    found = await findings(fresh_database_url, redis_url=f"redis://:hunter2@127.0.0.1:{port}/0")
    assert_fault(found["redis"], "Redis is not reachable.", "MEMOBOOK_REDIS_URL")


async def test_a_wrong_password_of_redis_is_named(fresh_database_url: str, servers: Urls) -> None:
    found = await findings(fresh_database_url, redis_url=servers.redis_url.replace("unix://", "unix://:hunter2@"))
    assert_fault(found["redis"], "Redis refuses the password.", "MEMOBOOK_REDIS_URL")


async def test_a_silent_worker_and_late_work_are_faults(
    fresh_database_url: str, raw: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    found = await findings(fresh_database_url)
    assert_fault(found["worker"], "No worker has reported within 30 seconds.", "memobook worker")
    await workers.report(raw, uuid4())
    assert (await findings(fresh_database_url))["worker"].state == "ok"
    app = create_app(Settings(database_url=fresh_database_url, _env_file=None))
    async with client_of(app, None) as client:
        await append(client, talk(1, 8))
    await app.state.database.close()
    clock = SteppedClock(system_clock())
    await raw.execute("UPDATE work SET run_after = $1", clock() - timedelta(hours=1))
    late = (await findings(fresh_database_url, clock=clock))["worker"]
    assert late.state == "fault"
    assert "3600 seconds" in late.message
    await count_call(raw, ModelCall("default", "memos", system_clock(), False, 100, 0, 1))
    over = await findings(fresh_database_url, clock=clock, tenant_monthly_tokens=1)
    assert over["worker"] == late, "without a model, no limit holds work back"
    await raw.execute("UPDATE work SET failed_at = now()")
    failed = (await findings(fresh_database_url))["worker"]
    assert (failed.state, failed.message) == ("note", "Workers: 1. Work that has failed for good: 1.")
    await raw.execute("UPDATE workers SET seen_at = now() - interval '31 seconds'")
    assert (await findings(fresh_database_url))["worker"].state == "fault"


# --- the model ------------------------------------------------------------------------------------

REFUSALS: list[tuple[Reply, str, str, str]] = [
    (refuses(401), "fault", "the model refuses the key (401)", "MEMOBOOK_LLM_API_KEY"),
    (refuses(402), "fault", "the model's account has no credit (402)", "credit"),
    (refuses(404), "fault", "the model server knows no such model or path (404)", "MEMOBOOK_LLM_MODEL"),
    (refuses(429), "note", "the model is rate-limited (429)", "MEMOBOOK_LLM_CONCURRENCY"),
    (refuses(500), "fault", "the model server fails (500)", "log"),
    (HANG_UP, "fault", "the connection to the model server broke", "MEMOBOOK_LLM_BASE_URL"),
    (says(""), "ok", "scripted answers", ""),
]


@pytest.mark.parametrize(("reply", "state", "reason", "do"), REFUSALS)
async def test_a_model_that_refuses_is_explained(
    fresh_database_url: str, model: ScriptedModel, reply: Reply, state: str, reason: str, do: str
) -> None:
    model.otherwise = reply
    found = await findings(fresh_database_url, llm_base_url=model.base_url, llm_model="scripted")
    assert found["model"].state == state
    assert reason in found["model"].message
    assert do in found["model"].advice


async def test_a_model_that_hangs_or_is_unreachable_is_a_fault(fresh_database_url: str, model: ScriptedModel) -> None:
    gate = model.hold()
    hanging = await findings(fresh_database_url, llm_base_url=model.base_url, llm_model="scripted", llm_timeout_s=0.3)
    gate.release()
    assert hanging["model"].state == "fault"
    assert "did not answer within 0.3 s" in hanging["model"].message
    url = f"http://127.0.0.1:{free_port('127.0.0.1', 0)}/v1"
    away = await findings(fresh_database_url, llm_base_url=url, llm_model="scripted")
    assert_fault(away["model"], "scripted: the model server cannot be reached.", "MEMOBOOK_LLM_BASE_URL")


async def test_each_model_of_a_layer_is_asked(fresh_database_url: str, model: ScriptedModel) -> None:
    model.otherwise = "OK"
    await findings(
        fresh_database_url,
        llm_base_url=model.base_url,
        llm_model="small",
        llm_model_of={"summary": "large", "memos": "small"},
    )
    assert sorted(request["model"] for request in model.requests) == ["large", "small"]


async def test_the_findings_contain_no_secret(servers: Urls) -> None:
    found = await findings(
        servers.database_url.replace("memobook:", "memobook:hunter2", 1),
        redis_url="redis://:hunter2@127.0.0.1:1/0",
        admin_key="hunter2",
        jwt_secret="hunter2" * 5,
        llm_base_url="http://user:hunter2@127.0.0.1:1/v1",
        llm_model="scripted",
        llm_api_key="hunter2",
    )
    assert {found[check].state for check in ("database", "redis", "model")} == {"fault"}
    assert "hunter2" not in repr(found)
