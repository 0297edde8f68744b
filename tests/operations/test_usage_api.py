"""What a tenant asks about its usage, and what its list of work says of a limit."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.limits import TokenLimits
from tests.api.wild import WILD_TEXTS
from tests.conftest import client_of
from tests.operations.limited import CALL_TOKENS, limited_api, limited_worker, make_key
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import append, ok, talk

MONTH_S = 30 * 86_400.0


async def test_a_month_without_calls_is_empty(api: httpx.AsyncClient) -> None:
    assert ok(await api.get("/v1/usage"), 200) == {
        "month": "2026-04",
        "limit_tokens": None,
        "used_tokens": 0,
        "items": [],
    }


async def test_calls_of_the_worker_are_counted_by_layer(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(api, talk(1, 24))
    model.script(refuses(503))
    clock.step(2)
    await dispatcher.drain()
    usage = ok(await api.get("/v1/usage"), 200)
    (memos,) = usage["items"]
    assert memos.pop("wait_s") > 0
    assert memos == {"layer": "memos", "calls": 3, "failures": 1, "prompt_tokens": 240, "completion_tokens": 60}
    assert usage["used_tokens"] == 2 * CALL_TOKENS


async def test_extractive_memos_use_nothing(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    assert await quoting_dispatcher.drain() == 1
    assert ok(await api.get("/v1/usage"), 200)["items"] == []


async def test_two_workers_at_once_count_every_call(
    api: httpx.AsyncClient, database: Database, clock: SteppedClock, model: ScriptedModel, nothing_due: None
) -> None:
    await append(api, talk(1, 160))
    clock.step(2)
    unlimited = TokenLimits()
    async with (
        limited_worker(database, clock, model, unlimited, slots=4) as one,
        limited_worker(database, clock, model, unlimited, slots=4) as other,
    ):
        assert min(await asyncio.gather(one.drain(), other.drain())) > 0
    usage = ok(await api.get("/v1/usage"), 200)
    assert usage["items"][0]["calls"] == len(model.calls) == 20
    assert usage["used_tokens"] == 20 * CALL_TOKENS


async def test_a_month_that_is_over_can_still_be_read(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    await dispatcher.drain()
    clock.step(MONTH_S)
    assert ok(await api.get("/v1/usage"), 200) == {
        "month": "2026-05",
        "limit_tokens": None,
        "used_tokens": 0,
        "items": [],
    }
    assert ok(await api.get("/v1/usage", params={"month": "2026-04"}), 200)["used_tokens"] == CALL_TOKENS


async def test_erasing_a_chat_takes_back_nothing_that_it_has_cost(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    await dispatcher.drain()
    ok(await api.delete("/v1/chats/c"), 204)
    assert ok(await api.get("/v1/usage"), 200)["used_tokens"] == CALL_TOKENS


@pytest.mark.parametrize(
    "month", ["", "2026", "2026-4", "2026-13", "2026-00", "0000-01", "2026-04-01", " 2026-04", "2026-04\n", "२०२६-०४"]
)
async def test_an_invalid_month_names_the_field(api: httpx.AsyncClient, month: str) -> None:
    problem = ok(await api.get("/v1/usage", params={"month": month}), 422)
    assert problem["errors"][0]["loc"] == ["query", "month"]


@settings(
    max_examples=60,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    month=st.sampled_from(WILD_TEXTS)
    | st.text(st.characters(codec="utf-8"), max_size=12)
    | st.from_regex(r"\A\d{4}-\d{2}\Z")
    | st.dates().map(lambda day: f"{day:%Y-%m}")
)
async def test_any_text_is_a_month_or_refused(api: httpx.AsyncClient, month: str) -> None:
    answer = await api.get("/v1/usage", params={"month": month.encode(errors="replace").decode()})
    if answer.status_code == 200:
        assert answer.json()["month"] == month
    else:
        assert ok(answer, 422)["errors"][0]["loc"] == ["query", "month"]


async def test_usage_is_seen_by_its_own_tenant_alone(
    api: httpx.AsyncClient, app: FastAPI, database: Database, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    await dispatcher.drain()
    async with client_of(app, await make_key(database, f"{tenant}-x", "read")) as stranger:
        assert ok(await stranger.get("/v1/usage"), 200)["items"] == []


@pytest.mark.parametrize("limit", [{"user_id": "mira"}, {"chat_id": "c"}], ids=str)
async def test_a_limited_token_sees_no_usage(app: FastAPI, api: httpx.AsyncClient, limit: dict[str, Any]) -> None:
    wanted = {"scopes": ["read"], "ttl_s": 60} | limit
    token = ok(await api.post("/v1/tokens", json=wanted), 201)["token"]
    async with client_of(app, token) as limited:
        assert ok(await limited.get("/v1/usage"), 403)["code"] == "forbidden"


async def test_a_limit_shows_in_the_usage_and_holds_due_work(
    api: httpx.AsyncClient,
    database: Database,
    database_url: str,
    tenant: str,
    key: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    limits = TokenLimits(10**9, {tenant: 2 * CALL_TOKENS})
    await append(api, talk(1, 32))
    clock.step(2)
    async with (
        limited_worker(database, clock, model, limits) as dispatcher,
        limited_api(database_url, clock, key, limits) as knowing,
    ):
        assert await _held(knowing) == [None] * 4
        await dispatcher.drain()
        assert await _held(knowing) == ["monthly_token_limit"] * 2
        usage = ok(await knowing.get("/v1/usage"), 200)
        assert (usage["limit_tokens"], usage["used_tokens"]) == (2 * CALL_TOKENS, 2 * CALL_TOKENS)
        clock.step(MONTH_S)
        assert await _held(knowing) == [None] * 2
        await dispatcher.drain()
        assert await _held(knowing) == []


async def test_running_and_failed_work_is_not_held(
    api: httpx.AsyncClient,
    database: Database,
    database_url: str,
    tenant: str,
    key: str,
    clock: SteppedClock,
    model: ScriptedModel,
    nothing_due: None,
) -> None:
    await append(api, talk(1, 32))
    clock.step(2)
    limits = TokenLimits(CALL_TOKENS)
    async with (
        limited_worker(database, clock, model, limits) as dispatcher,
        limited_api(database_url, clock, key, limits) as knowing,
    ):
        await dispatcher.drain()
        async with database.raw() as connection:
            for at_seq, values in (
                (17, "failed_at = now()"),
                (9, "lease = gen_random_uuid(), leased_until = now() + interval '50 seconds'"),
            ):
                await connection.execute(f"UPDATE work SET {values} WHERE at_seq = {at_seq}")
        items = ok(await knowing.get("/v1/work"), 200)["items"]
        assert sorted((row["status"], row["held"]) for row in items if row["status"] != "due") == [
            ("failed", None),
            ("running", None),
        ]
        assert {row["held"] for row in items if row["status"] == "due"} == {"monthly_token_limit"}


async def test_without_a_configured_model_no_work_is_held(
    api: httpx.AsyncClient, database: Database, database_url: str, key: str, clock: SteppedClock, dispatcher: Dispatcher
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    await dispatcher.drain()
    await append(api, talk(9, 16))
    for kind, held in ((None, None), ("llm", "monthly_token_limit"), ("embeddings", "monthly_token_limit")):
        async with limited_api(database_url, clock, key, TokenLimits(1), kind=kind) as knowing:
            assert await _held(knowing) == [held]


async def _held(api: httpx.AsyncClient) -> list[str | None]:
    return [row["held"] for row in ok(await api.get("/v1/work"), 200)["items"]]
