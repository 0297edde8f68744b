"""The former release serves a conversation on the new schema, beside the present one: `make check-upgrade`.

It is not part of `make check`, because it needs the history of the repository. The API and the worker of the former
release are started on their own schema, the schema is upgraded under them, and those of this directory join them.
"""

import asyncio
import itertools
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import orjson
import pytest

from app.kit.settings import PREFIX
from app.local.address import free_port
from app.local.running import Urls
from tests.conftest import sqlalchemy_url
from tests.local.conftest import eventually
from tests.scripted_model import Reply, Request, ScriptedModel, quoting_memo, says
from tests.talk import Json, ok, walk
from tests.upgrade.former import PRESENT, FormerReleaseError, Program, install, read_commit, unpack
from tests.upgrade.invariants import EVERY_MESSAGES, list_errors, list_lost, list_memo_faults
from tests.upgrade.service import make_database

KEY = "mb_check_" + "0" * 40
# Nothing is learnt: a worker of the former release counts attempts for work of a layer that it does not know, so this
# work can wait for minutes while both are running.
CHATS: dict[str, Json] = {
    "memo": {"preset": "memo", "history": {"keep_messages": 8, "grow_messages": 8}},
    "diary": {"preset": "diary", "memos": {"enabled": True}},
    "scenes": {"preset": "scenes", "memos": {"enabled": True}, "scenes": {"min_messages": 4}},
    "companion": {"preset": "companion", "diary": {"auto_write_turns": 4}, "consolidation": {"enabled": False}},
}
CAST: Json = {"user_name": "Mira", "characters": [{"name": "Kai", "persona": "A ferryman."}]}
FORMER, NEW = "former", "new"


@dataclass
class Side:
    """The API and the worker of one release, with a folder for their logs."""

    program: Program
    settings: dict[str, str]
    folder: Path
    api: httpx.AsyncClient = field(init=False)
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the release and of its model, which each memo records."""
        return self.folder.name

    @property
    def logs(self) -> list[bytes]:
        return [line for path in sorted(self.folder.glob("*.log")) for line in path.read_bytes().splitlines()]

    async def run(self, *arguments: str) -> None:
        """Run a command to its end."""
        process = await self._spawn(*arguments)
        assert await process.wait() == 0, self.logs

    async def start(self, *arguments: str) -> None:
        self.processes[arguments[0]] = await self._spawn(*arguments)

    async def stop(self, command: str) -> None:
        """End a process as an operator does."""
        process = self.processes.pop(command)
        process.terminate()
        async with asyncio.timeout(30):
            assert await process.wait() == 0, self.logs

    async def _spawn(self, *arguments: str) -> asyncio.subprocess.Process:
        with (self.folder / f"{arguments[0]}.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self.program.command(*arguments),
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], **self.program.environment, **self.settings},
                stderr=log,
            )


class Conversation:
    """Chats that are written through any API; it notes which texts were acknowledged, and each answer of status 5xx."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, dict[str, str]] = {chat_id: {} for chat_id in CHATS}
        self.failures: list[str] = []
        self._number = itertools.count(1)

    async def note(self, answer: httpx.Response) -> None:
        """Note an answer that a client got."""
        if answer.status_code >= 500:
            await answer.aread()
            self.failures.append(f"{answer.request.method} {answer.request.url.path}: {answer.status_code}")

    async def create(self, api: httpx.AsyncClient) -> None:
        for chat_id, settings in CHATS.items():
            ok(await api.put(f"/v1/chats/{chat_id}", json={**CAST, "settings": settings}), 201)

    async def append(self, api: httpx.AsyncClient, chat_id: str, count: int = 2) -> list[str]:
        """Append messages, each with a text of its own; return their ids."""
        numbers = list(itertools.islice(self._number, count))
        sent = {f"m{number}": f"Sentence {number} is about lamp {number * 7} on the pier." for number in numbers}
        roles = itertools.cycle(("user", "assistant"))
        messages = [{"id": name, "role": next(roles), "content": text} for name, text in sent.items()]
        ok(await api.post(f"/v1/chats/{chat_id}/messages", json={"messages": messages, "context": {}}), 201)
        self.acknowledged[chat_id] |= sent
        return list(sent)

    async def change(self, writer: httpx.AsyncClient, reader: httpx.AsyncClient, chat_id: str) -> None:
        """Append through one API, and edit, swipe and read that through the other."""
        asked, replied = await self.append(writer, chat_id)
        path = f"/v1/chats/{chat_id}/messages"
        ok(await reader.patch(f"{path}/{asked}", json={"content": f"Edited: {asked}."}), 200)
        self.acknowledged[chat_id][asked] = f"Edited: {asked}."
        ok(await reader.post(f"{path}/{replied}/swipes", json={"content": f"Another {replied}."}), 201)
        self.acknowledged[chat_id][replied] = f"Another {replied}."
        for api in (writer, reader):
            context = ok(await api.get(f"/v1/chats/{chat_id}/context", params={"format": "text"}), 200)
            assert f"Another {replied}." in context["text"]

    async def round(self, *apis: httpx.AsyncClient) -> None:
        """Write to every chat through every API at the same time."""
        async with asyncio.TaskGroup() as group:
            for chat_id in CHATS:
                for writer, reader in zip(apis, reversed(apis), strict=True):
                    group.create_task(self.change(writer, reader, chat_id))

    async def fill_batch(self, api: httpx.AsyncClient, chat_id: str) -> int:
        """Append until a batch is full; return its first seq."""
        count = len(self.acknowledged[chat_id])
        await self.append(api, chat_id, EVERY_MESSAGES - count % EVERY_MESSAGES)
        return count // EVERY_MESSAGES * EVERY_MESSAGES + 1


def answer_for(request: Request) -> Reply:
    """Return an answer of the model that the request names: no scene ends, and memos quote."""
    asks_for_break = '"break_at"' in str(request["messages"])
    text = '{"break_at": null, "reason": "Still the same evening."}' if asks_for_break else quoting_memo(request)
    reply = says(text)
    return replace(reply, body=orjson.dumps(orjson.loads(reply.body) | {"model": request["model"]}))


@pytest.fixture(scope="session")
def former(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("former")
    try:
        unpack(read_commit(), folder / "source")
        return install(folder, folder / "source")
    except FormerReleaseError as error:
        pytest.exit(str(error), returncode=1)


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """The folders of the two releases."""
    made = [tmp_path / name for name in (FORMER, NEW)]
    for folder in made:
        folder.mkdir()
    return made


@asynccontextmanager
async def opened(
    program: Program, urls: Urls, model: ScriptedModel, folder: Path, conversation: Conversation
) -> AsyncIterator[Side]:
    """Open a release whose processes end with the block; the name of `folder` is its name."""
    poll_s = PREFIX + ("POLL_S" if program == PRESENT else "SWEEP_S")  # the former release has the former name
    settings = {
        "MEMOBOOK_DATABASE_URL": sqlalchemy_url(urls.database_url),
        "MEMOBOOK_REDIS_URL": urls.redis_url,
        "MEMOBOOK_ADMIN_KEY": KEY,
        "MEMOBOOK_LLM_BASE_URL": model.base_url,
        "MEMOBOOK_LLM_MODEL": folder.name,
        "MEMOBOOK_SETTLE_S": "0.1",
        poll_s: "1",
    }
    side, port = Side(program, settings, folder), free_port("127.0.0.1", 0)
    side.settings["PORT"] = str(port)
    side.api = httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {KEY}"},
        trust_env=False,
        timeout=30,
        limits=httpx.Limits(keepalive_expiry=1),  # the service closes a connection that was idle for 5 seconds
        event_hooks={"response": [conversation.note]},
    )
    try:
        async with side.api:
            yield side
    finally:
        for process in side.processes.values():
            process.kill()
            await process.wait()


async def serve(side: Side) -> None:
    """Start the API and the worker, and wait for the API."""
    await side.start("api", "--port", side.settings["PORT"])
    await side.start("worker")

    async def answers() -> bool:
        assert side.processes["api"].returncode is None, side.logs
        try:
            return (await side.api.get("/healthz")).is_success
        except httpx.TransportError:
            return False

    await eventually(answers)


async def until_made(api: httpx.AsyncClient) -> None:
    """Wait until no work is due or running."""

    async def nothing_left() -> bool:
        pages = [await walk(api, "/v1/work", status=status, limit=500) for status in ("due", "running")]
        return not any(page for found in pages for page in found)

    await eventually(nothing_left)


async def list_memos(api: httpx.AsyncClient, chat_id: str) -> list[Json]:
    return [memo for page in await walk(api, f"/v1/chats/{chat_id}/memos", limit=500) for memo in page]


async def find_author(api: httpx.AsyncClient, chat_id: str, first_seq: int) -> str:
    """Return the model of the memo of a batch: the name of the release whose worker made it."""
    (memo,) = [memo for memo in await list_memos(api, chat_id) if memo["first_seq"] == first_seq]
    assert memo["status"] == "ready"
    return str(memo["model"])


def test_each_program_runs_its_own_release(former: Program, tmp_path: Path) -> None:
    folders = []
    for program in (former, PRESENT):
        command = [str(program.python), "-c", "import app; print(app.__file__)"]
        done = subprocess.run(
            command, cwd=tmp_path, env=dict(program.environment), check=True, capture_output=True, text=True
        )
        folders.append(Path(done.stdout.strip()).parents[1])
    assert [str(folder) for folder in folders] == [one.environment["PYTHONPATH"] for one in (former, PRESENT)]


async def test_two_releases_serve_one_conversation(former: Program, servers: Urls, folders: list[Path]) -> None:
    _, url = await make_database(servers)
    conversation = Conversation()
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedModel())
        model.otherwise = answer_for
        old, new = [
            await stack.enter_async_context(opened(program, Urls(url, servers.redis_url), model, folder, conversation))
            for program, folder in zip((former, PRESENT), folders, strict=True)
        ]
        await old.run("migrate")
        await serve(old)
        await conversation.create(old.api)
        await conversation.round(old.api)
        await until_made(old.api)

        # The schema changes under the former release, while it serves.
        async with asyncio.TaskGroup() as group:
            group.create_task(new.run("migrate"))
            for chat_id in CHATS:
                for _ in range(4):
                    group.create_task(conversation.append(old.api, chat_id))
        await conversation.round(old.api)
        await until_made(old.api)

        await serve(new)
        for _ in range(3):
            await conversation.round(old.api, new.api)
        await until_made(new.api)

        # Each worker alone makes memos of what the other release's API wrote.
        await new.stop("worker")
        for chat_id in CHATS:
            first_seq = await conversation.fill_batch(new.api, chat_id)
            await until_made(old.api)
            assert await find_author(new.api, chat_id, first_seq) == FORMER
        await new.start("worker")
        await old.stop("worker")
        for chat_id in CHATS:
            first_seq = await conversation.fill_batch(old.api, chat_id)
            await until_made(new.api)
            assert await find_author(old.api, chat_id, first_seq) == NEW
        await conversation.round(old.api, new.api)
        await until_made(new.api)

        faults = list(conversation.failures)
        for side in (old, new):
            faults += [f"work has failed: {page}" for page in await walk(side.api, "/v1/work", status="failed") if page]
            for chat_id, acknowledged in conversation.acknowledged.items():
                pages = await walk(side.api, f"/v1/chats/{chat_id}/messages", limit=500)
                messages = [message for page in pages for message in page]
                found = list_lost(acknowledged, messages)
                found += list_memo_faults(await list_memos(side.api, chat_id), len(messages))
                faults += [f"{side.name}, {chat_id}: {fault}" for fault in found]
        await new.stop("worker")
        for side in (old, new):
            await side.stop("api")
            faults += [f"{side.name}: {line}" for line in list_errors(side.logs)]
        assert faults == []
