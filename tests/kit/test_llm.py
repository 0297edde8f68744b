import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from app.kit.clock import SteppedClock
from app.kit.llm.client import MAX_ANSWER_MIB, ChatMessage, Completion, ModelClient, ModelError
from app.kit.llm.request_settings import RequestSettings
from tests.conftest import NOON
from tests.scripted_model import HANG_UP, Reply, ScriptedModel, Step, refuses, says, sends
from tests.slowness import SLOWNESS

KEY = "sk-neverseen"
SECRET = "Sakura hid the letter under the floor."
PROMPT: list[ChatMessage] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": SECRET}]


LASTING: list[tuple[Step, str]] = [
    (sends(b""), "the model server answers nothing"),
    (sends(b"<html>Welcome</html>"), "the model server answers something that is not a JSON object"),
    (sends(says("A key.").body[:60]), "the model server answers something that is not a JSON object"),
    (says(None), "the model's answer is empty"),
    (sends(b" " * (MAX_ANSWER_MIB * 2**20 + 1)), "the model's answer is longer than 1 MiB"),
    (refuses(400), "the model server refuses the request (400)"),
    (refuses(401), "the model refuses the key (401)"),
]
PASSING: list[tuple[Step, str]] = [
    (refuses(429), "the model is rate-limited (429)"),
    (refuses(500), "the model server fails (500)"),
    (refuses(503), "the model server fails (503)"),
    (sends(b'{"error": {"code": 502, "message": "upstream"}}'), "the model server fails (502)"),
    (HANG_UP, "the connection to the model server broke"),
    (replace(says("half"), cut_at=40), "the connection to the model server broke"),
]


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


class Waits(list[float]):
    """Takes the place of sleeping: notes how long, and goes on."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@contextlib.asynccontextmanager
async def client_of(base_url: str, **options: Any) -> AsyncIterator[ModelClient]:
    options = {"api_key": KEY, "sleep": Waits(), "clock": SteppedClock(NOON), **options}
    async with contextlib.aclosing(ModelClient(base_url, "tiny", **options)) as client:
        yield client


async def ask(client: ModelClient, **options: Any) -> Completion:
    async with asyncio.timeout(10 * SLOWNESS):  # a fault of the client must not hang the tests
        return await client.complete(PROMPT, **{"max_tokens": 200, **options})


async def error_of(client: ModelClient) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(client)
    return caught.value


async def test_a_call_sends_the_messages_and_reads_the_answer(model: ScriptedModel) -> None:
    model.script(says(" 【Highlight 1】: She hid a letter.\n", finish_reason="length"))
    async with client_of(model.base_url) as client:
        completion = await ask(client, temperature=0.3)
    assert completion == Completion("【Highlight 1】: She hid a letter.", "scripted-1", 120, 30, "length")
    assert model.requests == [{"model": "tiny", "messages": PROMPT, "max_tokens": 200, "temperature": 0.3}]
    assert model.calls[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("suffix", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/x?version=2", "/v1/x/chat/completions?version=2"),
    ],
)
async def test_the_path_of_the_base_url_is_kept(model: ScriptedModel, suffix: str, path: str) -> None:
    async with client_of(model.base_url + suffix) as client:
        await ask(client)
    assert model.calls[0].path == path


@pytest.mark.parametrize(
    ("key", "sent"),
    [
        (None, None),
        ("", None),
        ("sk-1", "Bearer sk-1"),
        ("sk-1\n", "Bearer sk-1"),
    ],  # a file ends with a newline
)
async def test_a_key_is_sent_if_there_is_one(model: ScriptedModel, key: str | None, sent: str | None) -> None:
    async with client_of(model.base_url, api_key=key) as client:
        await ask(client)
    assert model.calls[0].headers.get("authorization") == sent


async def test_a_url_password_is_sent_as_basic_auth_and_not_logged(
    model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with client_of(model.base_url.replace("//", "//kai:pw@"), api_key=None) as client:
        await ask(client)
    assert model.calls[0].headers["authorization"] == "Basic a2FpOnB3"
    assert "kai:pw" not in caplog.text


@pytest.mark.parametrize(("step", "reason"), LASTING)
async def test_a_permanent_error_is_not_retried(model: ScriptedModel, step: Step, reason: str) -> None:
    model.script(step)
    async with client_of(model.base_url) as client:
        error = await error_of(client)
    assert (error.reason, error.transient, len(model.calls)) == (reason, False, 1)


@pytest.mark.parametrize(("step", "reason"), PASSING)
async def test_a_transient_error_is_tried_three_times(model: ScriptedModel, step: Step, reason: str) -> None:
    model.otherwise = step
    async with client_of(model.base_url) as client:
        error = await error_of(client)
    assert (error.reason, error.transient, len(model.calls)) == (reason, True, 3)


@pytest.mark.parametrize(("step", "reason"), PASSING)
async def test_a_call_succeeds_after_transient_errors(model: ScriptedModel, step: Step, reason: str) -> None:
    model.script(step, step, "A key.")
    waits = Waits()
    async with client_of(model.base_url, sleep=waits) as client:
        assert (await ask(client)).text == "A key."
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with client_of(f"http://127.0.0.1:{port}/v1") as client:
        error = await error_of(client)
    assert (error.reason, error.transient) == ("the model server cannot be reached", True)


@pytest.mark.parametrize("wish", ["20", "20.0", "Wed, 01 Apr 2026 12:00:20 GMT"])
async def test_retry_after_is_waited_for(model: ScriptedModel, wish: str) -> None:
    model.script(refuses(429, retry_after=wish), "A key.")
    waits = Waits()
    async with client_of(model.base_url, sleep=waits) as client:
        await ask(client)
    assert waits == [20.0]


@pytest.mark.parametrize(
    ("wish", "told_s"), [("61", 61.0), ("Wed, 01 Apr 2026 12:05:00 GMT", 300.0), ("9" * 400, 3_600.0)]
)
async def test_a_wait_beyond_the_time_limit_is_returned_as_an_error(
    model: ScriptedModel, wish: str, told_s: float
) -> None:
    model.script(refuses(429, retry_after=wish))
    async with client_of(model.base_url, timeout_s=60) as client:
        error = await error_of(client)
    assert (error.transient, error.retry_after_s, len(model.calls)) == (True, told_s, 1)


async def test_an_error_without_time_for_a_retry_is_reported_as_is(
    model: ScriptedModel,
) -> None:
    model.otherwise = refuses(503)
    async with client_of(model.base_url, timeout_s=4, max_attempts=9) as client:  # `Waits` takes no time
        assert (await error_of(client)).reason == "the model server fails (503)"
    assert len(model.calls) <= 5, "the wait after the fifth failure is at least 4 s"


async def test_a_failing_server_with_a_slow_page_is_abandoned(model: ScriptedModel) -> None:
    model.otherwise = replace(refuses(503), byte_every_s=1)
    async with client_of(model.base_url) as client:
        assert (await error_of(client)).reason == "the model server fails (503)"


async def test_a_model_that_hangs_is_given_up(model: ScriptedModel) -> None:
    model.hold()
    async with client_of(model.base_url, timeout_s=0.1) as client:
        error = await error_of(client)
    assert (error.reason, error.transient) == ("the model did not answer within 0.1 s", True)


async def test_a_model_that_answers_too_slowly_is_given_up(model: ScriptedModel) -> None:
    model.script(replace(says("A key."), byte_every_s=0.05))  # never 0.3 s without a byte
    async with client_of(model.base_url, timeout_s=0.3) as client:
        assert (await error_of(client)).reason == "the model did not answer within 0.3 s"


async def test_no_more_calls_run_at_once_than_allowed(model: ScriptedModel) -> None:
    gate = model.hold()
    async with client_of(model.base_url, concurrency=3) as client:
        calls = [asyncio.create_task(ask(client)) for _ in range(8)]
        await gate.reached(3)
        gate.release()
        await asyncio.gather(*calls)
    assert (model.peak, len(model.calls)) == (3, 8)


async def test_waiting_for_a_slot_takes_nothing_from_the_time_limit(model: ScriptedModel) -> None:
    model.hold(calls=1)
    async with client_of(model.base_url, concurrency=1, timeout_s=1 * SLOWNESS) as client:
        first, second = await asyncio.gather(ask(client), ask(client), return_exceptions=True)
    assert isinstance(first, ModelError)
    assert isinstance(second, Completion)


async def test_a_cancelled_call_frees_its_slot(model: ScriptedModel) -> None:
    gate = model.hold(calls=1)
    async with client_of(model.base_url, concurrency=1) as client:
        running = asyncio.create_task(ask(client))
        await gate.reached()
        waiting = asyncio.create_task(ask(client))
        await asyncio.sleep(0)
        for call in (waiting, running):
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert await ask(client)


def picky(request: dict[str, Any]) -> Reply:
    """What a model answers that refuses two parameters."""
    for param, code in (("max_tokens", "unsupported_parameter"), ("temperature", "unsupported_value")):
        if param in request:
            return refuses(400, code=code, param=param)
    return says("A key.")


async def test_parameters_a_model_rejects_are_not_sent_again(model: ScriptedModel) -> None:
    model.otherwise = picky
    async with client_of(model.base_url) as client:
        await asyncio.gather(ask(client, temperature=0.3), ask(client, temperature=0.3))
        learnt = len(model.calls)
        await ask(client, temperature=0.3)
    assert len(model.calls) == learnt + 1
    assert model.requests[-1] == {"model": "tiny", "messages": PROMPT, "max_completion_tokens": 200}


async def test_a_client_with_settings_sends_its_own_model_and_more(model: ScriptedModel) -> None:
    async with client_of(model.base_url, settings=RequestSettings(extra_body={"seed": 1})) as client:
        large = client.with_settings(RequestSettings("large", extra_body={"reasoning_effort": "low"}))
        await ask(client)
        await ask(large)
    shared = {"messages": PROMPT, "max_tokens": 200, "seed": 1}
    assert model.requests == [shared | {"model": "tiny"}, shared | {"model": "large", "reasoning_effort": "low"}]


async def test_clients_with_settings_share_their_slots(model: ScriptedModel) -> None:
    model.otherwise = replace(says("A key."), byte_every_s=0.0005)
    async with client_of(model.base_url, concurrency=1) as client:
        await asyncio.gather(*(ask(one) for one in (client, client.with_settings(RequestSettings("large")))))
    assert (len(model.calls), model.peak) == (2, 1)


async def test_a_parameter_rejected_by_one_model_is_sent_to_another(model: ScriptedModel) -> None:
    model.otherwise = lambda request: picky(request) if request["model"] == "tiny" else says("A key.")
    async with client_of(model.base_url) as client:
        await ask(client, temperature=0.3)
        await ask(client.with_settings(RequestSettings("large")), temperature=0.3)
    assert model.requests[-1] == {"model": "large", "messages": PROMPT, "max_tokens": 200, "temperature": 0.3}


@pytest.mark.parametrize(
    ("code", "param", "calls"),
    [
        ("invalid_value", "max_tokens", 1),
        ("unsupported_value", "messages", 1),
        ("unsupported_value", "max_tokens", 2),
    ],
)
async def test_a_rejection_that_cannot_be_avoided_is_final(
    model: ScriptedModel, code: str, param: str, calls: int
) -> None:
    model.otherwise = refuses(400, code=code, param=param)
    async with client_of(model.base_url) as client:
        assert (await error_of(client)).reason == "the model server refuses the request (400)"
    assert len(model.calls) == calls


async def test_a_redirect_does_not_carry_the_key_away(model: ScriptedModel) -> None:
    async with ScriptedModel() as elsewhere, client_of(model.base_url) as client:
        model.script(Reply(307, headers={"Location": f"{elsewhere.base_url}/chat/completions"}))
        await error_of(client)
        assert elsewhere.calls == []


@pytest.mark.parametrize("status", [400, 401, 429, 500, 200])
async def test_an_error_quotes_nothing_that_the_server_says(model: ScriptedModel, status: int) -> None:
    echo = refuses(status, message=f"{KEY} {SECRET}", code=KEY, param=SECRET)
    model.otherwise = replace(echo, headers={"Retry-After": KEY, "Location": f"/{KEY}"})
    async with client_of(model.base_url.replace("//", "//kai:pw@")) as client:
        error = await error_of(client)
    shown = f"{error} {error!r} {error.reason}"
    assert not [secret for secret in (KEY, SECRET, "pw", "127.0.0.1") if secret in shown]
    assert "\n" not in error.reason


@pytest.mark.parametrize("key", ["sk-\nx", "sk-ключ", "sk a"])
def test_a_key_unfit_for_a_header_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ValueError, match="API key") as caught:
        ModelClient("http://127.0.0.1/v1", "tiny", api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("url", ["", "localhost:1234/v1", "ftp://host/v1", "http://", "http://kai:pw@host:port/v1"])
def test_an_invalid_base_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match="base URL") as caught:
        ModelClient(url, "tiny")
    assert "pw" not in str(caught.value)
