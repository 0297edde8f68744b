import asyncio
import json
import sys
from pathlib import Path

import httpx
import pytest

from tests.scripted_model import ScriptedModel, quoting_memo, refuses
from tests.slowness import SLOWNESS

REQUEST = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Kai gave her the key.\nHm.\nShe will keep it."}],
}


async def post(base_url: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=5 * SLOWNESS) as http:
        return await http.post(f"{base_url}/chat/completions", json=REQUEST)


def text_of(response: httpx.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


async def test_it_follows_its_script_and_then_quotes_the_request() -> None:
    async with ScriptedModel() as model:
        model.script(refuses(429, retry_after="2"), lambda request: f"to {request['model']}")
        refused, scripted, quoting = [await post(model.base_url) for _ in range(3)]
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "2")
    assert text_of(scripted) == "to tiny"
    assert text_of(quoting).splitlines() == [
        "【Highlight 1】: (milestone) One of them said “Kai gave her the key.”.",
        "【Highlight 2】: (milestone) One of them said “She will keep it.”.",
    ]


def test_its_memo_quotes_what_a_prompt_holds_as_json() -> None:
    lines = [json.dumps({"n": n, "message": text}) for n, text in enumerate(["Hi.", 'The "blue" door.', "Ça va, Léa?"])]
    memo = quoting_memo({"messages": [{"role": "user", "content": "\n".join(["Sum up this long story:", *lines])}]})
    assert '“The "blue" door.”' in memo
    assert "“Ça va, Léa?”" in memo
    assert "Sum up" not in memo


async def test_a_gate_holds_calls_until_it_is_released() -> None:
    async with ScriptedModel() as model:
        gate = model.hold(calls=1)
        held = asyncio.create_task(post(model.base_url))
        await gate.reached()
        passed = await post(model.base_url)
        assert (passed.status_code, held.done(), model.active, model.peak) == (200, False, 1, 2)
        gate.release()
        await gate.answered()
        assert (await held).status_code == 200


async def test_a_fault_in_a_step_fails_its_test() -> None:
    model = await ScriptedModel().__aenter__()
    model.script(lambda request: str(request["nothing"]))
    with pytest.raises(httpx.RemoteProtocolError):
        await post(model.base_url)
    with pytest.raises(KeyError, match="nothing"):
        await model.__aexit__()


async def test_it_runs_as_a_process_of_its_own() -> None:
    root = Path(__file__).parent.parent
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.scripted_model",
        "--delay-ms",
        "1",
        stdout=asyncio.subprocess.PIPE,
        cwd=root,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(20 * SLOWNESS):
            base_url = (await process.stdout.readline()).decode().strip()
            assert (await post(base_url)).status_code == 200
    finally:
        process.terminate()
        await process.wait()
