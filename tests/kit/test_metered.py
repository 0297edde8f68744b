"""The model that is counted: every call that ends, whatever it brought, and none at the cost of an answer."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.llm.client import ChatMessage, Completion, ModelClient, ModelError
from app.kit.llm.metered import MeteredModel
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from tests.conftest import sqlalchemy_url
from tests.scripted_model import HANG_UP, Reply, ScriptedModel, refuses, says, sends

ASKED: list[ChatMessage] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What did Kai give her?"},
]


@pytest.fixture
async def database(fresh_database_url: str) -> AsyncIterator[Database]:
    """A database in which nothing was counted."""
    opened = Database(sqlalchemy_url(fresh_database_url), pool_size=4)
    yield opened
    await opened.close()


@pytest.fixture
async def client(model: ScriptedModel) -> AsyncIterator[ModelClient]:
    """A client that asks once and has one slot."""
    async with aclosing(ModelClient(model.base_url, "tiny", concurrency=1, max_attempts=1)) as opened:
        yield opened


@pytest.fixture
def metered(client: ModelClient, database: Database, clock: SteppedClock) -> MeteredModel:
    return MeteredModel(client, database, clock, tenant="t", layer="memos")


async def ask(metered: MeteredModel) -> Completion:
    return await metered.complete(ASKED, max_tokens=50)


async def counted(database: Database) -> list[asyncpg.Record]:
    async with database.raw() as connection:
        return await connection.fetch("SELECT * FROM model_usage ORDER BY month")


async def only(database: Database) -> asyncpg.Record:
    (row,) = await counted(database)
    return row


def with_usage(usage: Any) -> Reply:
    """An answer whose server says this of its tokens."""
    answer = json.loads(says("The key.").body) | {"usage": usage}
    return sends(json.dumps(answer).encode(), "application/json")


async def test_an_answer_is_handed_on_and_counts_what_the_server_says(
    metered: MeteredModel, client: ModelClient, model: ScriptedModel, database: Database
) -> None:
    model.script("The key.")
    assert (await metered.complete(ASKED, max_tokens=50, temperature=0.5)).text == "The key."
    assert model.requests[0] == {"model": "tiny", "messages": ASKED, "max_tokens": 50, "temperature": 0.5}
    assert metered.context_tokens == client.context_tokens
    row = await only(database)
    assert (row["tenant"], row["layer"], row["month"].isoformat()) == ("t", "memos", "2026-04-01")
    assert (row["calls"], row["failures"], row["prompt_tokens"], row["completion_tokens"]) == (1, 0, 120, 30)


@pytest.mark.parametrize(
    ("step", "reason"),
    [(refuses(503), "503"), (refuses(401), "401"), (HANG_UP, "broke"), (sends(b"?"), "JSON"), (sends(b"{}"), "JSON")],
    ids=["away", "refused", "hung up", "rubbish", "nothing"],
)
async def test_a_failure_without_usage_is_raised_and_counts_no_tokens(
    metered: MeteredModel, model: ScriptedModel, database: Database, step: Reply, reason: str
) -> None:
    model.script(step)
    with pytest.raises(ModelError, match=reason):
        await ask(metered)
    row = await only(database)
    assert (row["calls"], row["failures"], row["prompt_tokens"], row["completion_tokens"]) == (1, 1, 0, 0)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (says(""), "empty"),
        (says(None, finish_reason="length", reasoning_content="Let me think."), "thought"),
        (says("", refusal="No."), "declines"),
        (sends(b'{"choices": [], "usage": {"prompt_tokens": 120, "completion_tokens": 30}}'), "no choices"),
    ],
    ids=["empty", "only thought", "declined", "no choices"],
)
async def test_an_answer_without_text_counts_its_reported_tokens(
    metered: MeteredModel, model: ScriptedModel, database: Database, step: Reply, reason: str
) -> None:
    model.script(step)
    with pytest.raises(ModelError, match=reason):
        await ask(metered)
    row = await only(database)
    assert (row["calls"], row["failures"], row["prompt_tokens"], row["completion_tokens"]) == (1, 1, 120, 30)


async def test_retries_of_the_client_count_as_one_call(
    model: ScriptedModel, database: Database, clock: SteppedClock
) -> None:
    async def no_wait(_wait_s: float) -> None: ...

    async with aclosing(ModelClient(model.base_url, "tiny", max_attempts=3, sleep=no_wait)) as client:
        metered = MeteredModel(client, database, clock, tenant="t", layer="memos")
        model.script(refuses(503), refuses(503), "The key.")
        assert (await ask(metered)).text == "The key."
    row = await only(database)
    assert (len(model.calls), row["calls"], row["failures"]) == (3, 1, 0)


async def test_a_timeout_counts_as_a_failure_with_its_wait(
    model: ScriptedModel, database: Database, clock: SteppedClock
) -> None:
    model.hold()
    async with aclosing(ModelClient(model.base_url, "tiny", timeout_s=0.5, max_attempts=1)) as client:
        with pytest.raises(ModelError, match=r"within 0\.5 s"):
            await ask(MeteredModel(client, database, clock, tenant="t", layer="memos"))
    row = await only(database)
    assert (row["calls"], row["failures"], row["prompt_tokens"]) == (1, 1, 0)
    assert row["wait_ms"] >= 500


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "many", "completion_tokens": -1}], ids=str)
async def test_tokens_are_counted_locally_if_the_server_omits_them(
    metered: MeteredModel, model: ScriptedModel, database: Database, usage: Any
) -> None:
    model.script(with_usage(usage))
    await ask(metered)
    row = await only(database)
    prompt_tokens = sum(MESSAGE_OVERHEAD_TOKENS + count_tokens(message["content"]) for message in ASKED)
    assert (row["prompt_tokens"], row["completion_tokens"]) == (prompt_tokens, count_tokens("The key."))


async def test_a_partial_usage_report_is_used_as_far_as_it_goes(
    metered: MeteredModel, model: ScriptedModel, database: Database
) -> None:
    model.script(with_usage({"prompt_tokens": 99}))
    await ask(metered)
    row = await only(database)
    assert (row["prompt_tokens"], row["completion_tokens"]) == (99, count_tokens("The key."))


async def test_a_reported_prompt_cost_of_zero_is_accepted(
    metered: MeteredModel, model: ScriptedModel, database: Database
) -> None:
    model.script(with_usage({"prompt_tokens": 0, "completion_tokens": 0}))
    await ask(metered)
    row = await only(database)
    assert (row["prompt_tokens"], row["completion_tokens"]) == (0, 0)


async def test_absurd_reported_numbers_can_still_be_counted(
    metered: MeteredModel, model: ScriptedModel, database: Database
) -> None:
    absurd = with_usage({"prompt_tokens": 2**63 - 1, "completion_tokens": 2**62})
    model.script(absurd, absurd, absurd)
    for _ in range(3):
        await ask(metered)
    assert (await only(database))["calls"] == 3


async def test_the_wait_for_a_free_slot_is_waiting_time(database: Database, clock: SteppedClock) -> None:
    async with (
        ScriptedModel(delay_s=0.1) as slow,
        aclosing(ModelClient(slow.base_url, "tiny", concurrency=1)) as client,
    ):
        first, second = (MeteredModel(client, database, clock, tenant="t", layer=layer) for layer in ("1st", "2nd"))
        await asyncio.gather(ask(first), ask(second))
    waits = {row["layer"]: row["wait_ms"] for row in await counted(database)}
    assert waits["1st"] >= 100
    assert waits["2nd"] >= 200


async def test_a_call_belongs_to_the_month_in_which_it_was_asked(
    metered: MeteredModel, model: ScriptedModel, clock: SteppedClock, database: Database
) -> None:
    clock.step(30 * 86_400 - 43_201)  # the last second of April
    gate = model.hold(1)
    async with asyncio.TaskGroup() as asking:
        asking.create_task(ask(metered))
        await gate.reached()
        clock.step(2)
        gate.release()
    await ask(metered)
    assert [row["month"].isoformat() for row in await counted(database)] == ["2026-04-01", "2026-05-01"]


async def test_a_call_that_is_given_up_is_not_counted(
    metered: MeteredModel, model: ScriptedModel, database: Database
) -> None:
    gate = model.hold(1)
    asking = asyncio.create_task(ask(metered))
    await gate.reached()
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    assert asking.cancelled()
    assert await counted(database) == []


async def test_an_unreachable_database_does_not_lose_the_answer(
    client: ModelClient, model: ScriptedModel, clock: SteppedClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = Database(f"postgresql+asyncpg://memobook@/memobook?host={tmp_path}")
    metered = MeteredModel(client, away, clock, tenant="t", layer="memos")
    model.script("The key.", refuses(503))
    with caplog.at_level(logging.WARNING, "app.kit.usage"):
        assert (await ask(metered)).text == "The key."
        with pytest.raises(ModelError, match="503"):
            await ask(metered)
    await away.close()
    assert caplog.text.count("was not counted") == 2


async def test_a_failure_to_count_does_not_lose_the_answer(
    metered: MeteredModel, model: ScriptedModel, database: Database
) -> None:
    model.otherwise = "The key."
    await ask(metered)
    async with database.raw() as connection:
        await connection.execute("UPDATE model_usage SET calls = 9223372036854775807")
    assert (await ask(metered)).text == "The key."
    assert (await only(database))["prompt_tokens"] == 120


async def test_a_locked_usage_row_does_not_lose_the_answer(
    metered: MeteredModel, model: ScriptedModel, database: Database
) -> None:
    """The lock is waited for as long as the connection lets a statement wait, and no longer."""
    model.otherwise = "The key."
    await ask(metered)
    async with database.unit_of_work() as locking:
        await locking.raw.execute("SELECT 1 FROM model_usage FOR UPDATE")
        assert (await ask(metered)).text == "The key."
    assert (await only(database))["calls"] == 1
