"""What the tests that walk through all layers need to know of each one: its sample, in `tests/<name>/sample.py`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Connection
from tests.golden.script import Story
from tests.scripted_model import Reply, Request, ScriptedModel
from tests.talk import Json


@dataclass(frozen=True)
class Stage:
    """A service with a worker and a scripted model."""

    api: httpx.AsyncClient
    dispatcher: Dispatcher
    clock: SteppedClock
    model: ScriptedModel

    async def settle(self, answer: Callable[[Request], str | Reply]) -> None:
        """Make everything that is due with this answer of the model."""
        self.model.otherwise = answer
        self.clock.step(5)
        await self.dispatcher.drain()


@dataclass(frozen=True)
class LastAttempt:
    """How the work of a job becomes due in the chat `c`, and what changes its source while it is made.

    Attributes:
        key: A pattern of LIKE for the key of the work item.
        make_due: Schedules the work item.
        change: An UPDATE statement without WHERE, after which the job finds that its source has changed.

    """

    key: str
    make_due: Callable[[Stage], Awaitable[None]]
    change: str


Row = Mapping[str, Any]
"""A row of a table, as JSON has it."""


def _answer_nothing(_story: Story) -> Mapping[str, Callable[[str], str]]:
    """A layer that asks no model, or whose prompts `tests/golden/author.py` answers."""
    return {}


async def _write_nothing(_api: httpx.AsyncClient) -> None:
    """A layer that people write nothing in."""


async def refuse(connection: Connection, chat_key: UUID, table: str) -> None:
    """Have the rows of a chat look as if they were quoted, because the model had declined."""
    refusals = """'[{"kind": "declined", "reason": "the model refuses"}]'"""
    await connection.execute(f"UPDATE {table} SET refusals = {refusals} WHERE chat_key = $1", chat_key)


async def _fill_nothing(_connection: Connection, _chat_key: UUID) -> None:
    """A layer whose rows have something in every column by then."""


@dataclass(frozen=True, kw_only=True)
class RichRows:
    """How the chat `c` of `tests/chats/rich.py` gets rows with something in every column of a layer's tables.

    Attributes:
        settings: Settings that switch the layer on before messages 33–36 are appended; it is switched off again after
            `write_after`.
        write_before: What people write before messages 33–36 are appended, all of which is then made.
        write_after: What people do to what was made; what follows from it is made, too.
        write_last: What people do at the end, when the chat has 43 messages; what is due from it stays due.
        fill: Writes to the database, at last, what no request leads to.

    """

    settings: Json = field(default_factory=dict)
    write_before: Callable[[httpx.AsyncClient], Awaitable[None]] = _write_nothing
    write_after: Callable[[httpx.AsyncClient], Awaitable[None]] = _write_nothing
    write_last: Callable[[httpx.AsyncClient], Awaitable[None]] = _write_nothing
    fill: Callable[[Connection, UUID], Awaitable[None]] = _fill_nothing


@dataclass(frozen=True, kw_only=True)
class LayerSample:
    """What the tests over all layers need from one layer. The defaults are for a layer without such a thing.

    Attributes:
        last_attempts: By job prefix, how the job's work becomes due and how its source changes during an attempt.
        jobs_without_draft: The prefixes of jobs whose source cannot change, because they read and write in one
            transaction, or that ask no model; the layer's own tests change what such a job has read.
        begins: By the name of each of its tables that is copied with a line, the seq at which a row begins, without
            the SQL of the table's `info["begins"]`.
        wording: By the version of each prompt, the beginning of the sha-256 of its words.
        examples: The names of the persons in the examples of its prompts, which no other layer uses.
        prompts_without_text: The names of prompts that ask for a decision, not for a text.
        settings: Settings under which 16 messages create an item in each of its lists, even without a worker.
        write: Writes texts as a person into the chat `c` of 16 or more messages, so that each list has two items once
            the work is done.
        path_parameters: The values of parameters of its paths that no list right above them has, in a chat where
            `write` was called, or that has 16 messages.
        before: By operation id, a function to call before the operation's example is sent; it gets the client and
            the path of the chat, and returns parameters of the operation's path.
        missing: By the path of each of its lists below the chat, the code of the problem if an item is not there.
        in_presets: By the path of a setting, its value in each preset, in the order of `PRESETS`:
            `{"memos.enabled": (True, False, False, False, False, True)}`.
        author: The answers of a good model to its prompts in the golden story: takes the story, returns a function of
            the request's user text by the name of each prompt. The prompts of the layers whose answers
            `tests/golden/author.py` has itself are not included.
        unasked_prompts: The names of its prompts that no preset uses.
        golden_settings: For the golden story, by a label: a preset, the settings of one of two chats, and the segments
            that differ because of them.
        rich: The layer's rows in the chat with a value in each column (`tests/chats/rich.py`).

    """

    last_attempts: Mapping[str, LastAttempt] = field(default_factory=dict)
    jobs_without_draft: frozenset[str] = frozenset()
    begins: Mapping[str, Callable[[Row], float]] = field(default_factory=dict)
    rich: RichRows = RichRows()
    author: Callable[[Story], Mapping[str, Callable[[str], str]]] = _answer_nothing
    unasked_prompts: frozenset[str] = frozenset()
    golden_settings: Mapping[str, tuple[str, Json, set[str]]] = field(default_factory=dict)
    in_presets: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    settings: Json = field(default_factory=dict)
    write: Callable[[httpx.AsyncClient], Awaitable[None]] = _write_nothing
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, Callable[[httpx.AsyncClient, str], Awaitable[dict[str, str]]]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    wording: Mapping[str, str] = field(default_factory=dict)
    examples: frozenset[str] = frozenset()
    prompts_without_text: frozenset[str] = frozenset()
