"""`memobook eval`: uses the configured model to make the memories of a conversation, on servers of its own.

The API and the worker run in this process, so the evaluation sees each refused answer. The embedded PostgreSQL and
Valkey are started for the evaluation, and their data is removed at its end, so no chat of the deployment is touched.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from app.demo.api import Api
from app.demo.errors import DemoError
from app.demo.run import CONVERSATION, read_input
from app.demo.screen import Screen
from app.demo.show_memory import word_book, word_recap, word_scenes, word_summary
from app.demo.tally import count_outcomes, word_tally
from app.demo.tool_calls import ToolCall, take_calls
from app.demo.words import Calendar
from app.kit.job_context import PromptTemplate
from app.kit.llm.answer import needs_correction
from app.kit.refusals import Refusal
from app.kit.settings import Settings
from app.local.stack import Stack
from app.local.up import until_signal
from app.main import create_app
from app.transfer.transcript import Transcript
from app.worker import run_worker

_CHAT = "/v1/chats/eval"
_SETTINGS = {"preset": "memo", "summary": {"enabled": True}, "scenes": {"enabled": True}}
_MESSAGES_EACH = 100
_POLL_S = 0.2
_ATTEMPTS = 3
"""The evaluation gives up when one work item has begun this many attempts and has an error from one of them. It gives
up at the first error if further attempts would fail, too: a person has to correct the key, the account or the model."""

Worker = asyncio.Task[None]


@dataclass(frozen=True, slots=True)
class _Faults:
    """The refused answers of an evaluation.

    Attributes:
        refusals: (layer, refusal) of each refused answer.
        asked_again: For each layer, how many requests followed a refused answer.

    """

    refusals: list[tuple[str, Refusal]] = field(default_factory=list)
    asked_again: Counter[str] = field(default_factory=Counter)


def add_eval_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `memobook eval`."""
    parser.add_argument(
        "--input",
        type=Path,
        default=CONVERSATION,
        metavar="FILE",
        help="a JSONL file of messages, or a SillyTavern chat (default: the conversation of the demo)",
    )


async def run_eval(options: argparse.Namespace, settings: Settings, prompts: Mapping[str, PromptTemplate]) -> int:
    """Make memos, summary, scenes and recap of the conversation, print them, and return the exit code.

    Raises DemoError if no model is configured, the conversation cannot be read, or the model gives no answers.
    """
    if settings.llm_base_url is None or settings.llm_model is None:
        raise DemoError("no model is configured; set MEMOBOOK_LLM_BASE_URL and MEMOBOOK_LLM_MODEL")
    transcript = read_input(options.input)
    screen = Screen(sys.stdout)
    with until_signal(screen.say), _private_directory() as data, _collected_faults() as faults:
        async with Stack(data, serve=False) as stack:
            urls = {"database_url": stack.urls.database_url, "redis_url": stack.urls.redis_url}
            own = settings.model_copy(
                update={**urls, "settle_s": 0.0, "admin_key": None, "tenant_monthly_tokens": None}
            )
            async with _service(own, prompts) as (api, worker):
                await _evaluate(api, worker, settings.llm_model, transcript, faults, screen)
    return 0


async def _evaluate(
    api: Api, worker: Worker, model: str, transcript: Transcript, faults: _Faults, screen: Screen
) -> None:
    hidden = set(transcript.hidden)
    moments = take_calls([message for message in transcript.messages if message["id"] not in hidden])
    messages = [one for one in moments if not isinstance(one, ToolCall)]
    screen.say(f"Asking {model} about {len(messages):,} messages …")
    await api.put(_CHAT, transcript.chat | {"settings": _SETTINGS})
    times: dict[int, datetime] = {}
    started_s = time.monotonic()
    for start in range(0, len(messages), _MESSAGES_EACH):
        answer = await api.post(f"{_CHAT}/messages", {"messages": messages[start : start + _MESSAGES_EACH]})
        times |= {message["seq"]: datetime.fromisoformat(message["sent_at"]) for message in answer["messages"]}
    await _wait_for_work(api, worker, screen)
    seconds = time.monotonic() - started_s
    chat = await api.get(_CHAT)
    memos, scenes = await api.get_all(f"{_CHAT}/memos"), await api.get_all(f"{_CHAT}/scenes")
    closed = [scene for scene in scenes if not scene["open"]]
    outcomes = {
        "memos": count_outcomes(memos),
        "summary": count_outcomes(await api.get_all(f"{_CHAT}/summary/versions")),
        "scenes": count_outcomes([*closed, *await api.get_all(f"{_CHAT}/recap/versions")]),
    }
    calendar = Calendar(times, chat["time_zone"])
    usage = (await api.get("/v1/usage"))["items"]
    lines = [
        *word_book(memos, calendar, chat["anchor_seq"]),
        *word_summary(await api.get(f"{_CHAT}/summary")),
        *word_scenes(scenes, calendar, []),
        *word_recap(await api.get(f"{_CHAT}/recap")),
        *word_tally(model, len(messages), seconds, outcomes, usage, faults.refusals, faults.asked_again),
    ]
    for line in lines:
        screen.say(line)


async def _wait_for_work(api: Api, worker: Worker, screen: Screen) -> None:
    """Wait until nothing is due.

    Raises DemoError if the model does not answer. If the worker has ended with an error, raises this error.
    """
    most = 0
    while due := await _list_due(api):
        if worker.done():
            await worker
        stuck = next((work for work in due if work["error"] and _is_stuck(work)), None)
        if stuck:
            raise DemoError(f"the model gives no answer for {stuck['layer']}: {stuck['error']}")
        most = max(most, len(due))
        screen.show(most - len(due), most, f"  {len(due):>5,} texts to make")
        await asyncio.sleep(_POLL_S)


def _is_stuck(work: Mapping[str, Any]) -> bool:
    """Return whether a work item with an error is given up: after `_ATTEMPTS`, or if a person has to correct it."""
    return work["attempts"] >= _ATTEMPTS or needs_correction(work["error"])


async def _list_due(api: Api) -> list[dict[str, Any]]:
    page = await api.get("/v1/work", chat_id="eval", limit=500)
    return [work for work in page["items"] if work["status"] != "failed"]


@asynccontextmanager
async def _service(settings: Settings, prompts: Mapping[str, PromptTemplate]) -> AsyncGenerator[tuple[Api, Worker]]:
    """Run the application and a worker in this process during the block."""
    app = create_app(settings)
    transport = httpx.ASGITransport(app=app)
    async with app.router.lifespan_context(app):
        worker = asyncio.create_task(run_worker(settings, prompts))
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                yield Api(client), worker
        finally:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker


@contextmanager
def _private_directory() -> Generator[Path]:
    """Yield the path of a data directory that does not exist yet; it is removed after the block.

    The account that runs PostgreSQL can traverse the parent of the data directory.
    """
    with tempfile.TemporaryDirectory(prefix="memobook-eval-", dir="/tmp") as path:
        Path(path).chmod(0o711)
        yield Path(path) / "data"


class _FaultHandler(logging.Handler):
    """Collects the refusals, and the requests that follow them, which `app.layers.ask` logs."""

    def __init__(self, faults: _Faults) -> None:
        super().__init__()
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        """Add the record's refusal, if it has one. Count the record if it reports a request after a refused answer."""
        refusal, layer = getattr(record, "refusal", None), getattr(record, "layer", "")
        if isinstance(refusal, Refusal):
            self._faults.refusals.append((layer, refusal))
        if getattr(record, "asked_again", False):
            self._faults.asked_again[layer] += 1


@contextmanager
def _collected_faults() -> Generator[_Faults]:
    """Yield an object to which each refused answer, and each request after one, is added during the block."""
    faults = _Faults()
    log, handler = logging.getLogger("app.layers.ask"), _FaultHandler(faults)
    level, propagates = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.propagate = False  # `word_tally` lists the refused answers
    try:
        yield faults
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagates
