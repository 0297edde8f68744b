"""Requests to the service, and snapshots of a line from the database and the API."""

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx
import orjson

from app.chats.chat_lock import ChatRef, lock_head
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.memos.handlers import read_window
from tests.oracle.reference.tables import Tables, read_tables
from tests.scripted_model import Request, ScriptedModel
from tests.slowness import SLOWNESS
from tests.talk import FORMATS, Json, ok

PATIENCE_S = 30 * SLOWNESS
NOW = "2026-04-01T12:00:00Z"
WORD = re.compile(r"\b[wp]\d+[wp]\b")
"""Each text contains a unique word: `w…w` in a message, `p…p` in a text that a person wrote into a layer."""

_ROW = """
    SELECT line_id::text AS line, head_seq, anchor_seq, history_messages, message_count, token_count, turn_count,
        memo_count, memo_number, cut_waits, last_cut::text AS last_cut, (context_cache -> 'memos')::text AS memo_window
    FROM chats WHERE chat_key = $1 AND line_status = 'current'"""

_MESSAGES = """
    SELECT seq, message_id, deleted_at IS NOT NULL AS deleted, hidden_by, visibility_pinned FROM messages
    WHERE chat_key = $1 AND line_id = $2 ORDER BY seq"""

_MEMOS = """
    SELECT memo_id::text AS id, number, first_seq, last_seq, deleted_at IS NOT NULL AS deleted, source_hash,
        current_hash
    FROM memos WHERE chat_key = $1 AND line_id = $2 ORDER BY sort_key, number"""

_WORK = """
    SELECT key, error, failed_at IS NOT NULL AS failed, work_id::text AS id FROM work
    WHERE owner_key = $1 AND line_id = $2"""


@dataclass(frozen=True)
class Snapshot:
    """A chat's current line as read from the database and over HTTP.

    Attributes:
        row: The line's row of `chats`.
        messages: All rows of messages, including deleted ones.
        memos: All rows of memos, including deleted ones.
        work: The rows of due and failed work, by their key, which is the memo's id.
        window: The memo window as the layer computes it from the memos.
        listed, book, context, sessions: The messages, memos, context and sessions over HTTP.
        words: The unique words in the context, in their order.

    """

    row: Json
    messages: list[Json]
    memos: list[Json]
    work: dict[str, Json]
    window: Json
    listed: list[Json]
    book: list[Json]
    context: Json
    sessions: list[Json]
    words: list[str]

    @property
    def anchor(self) -> int:
        anchor_seq: int = self.row["anchor_seq"]
        return anchor_seq


@dataclass
class Service:
    """The service and its fixtures, for a state machine that runs in a thread beside the tests' loop."""

    api: httpx.AsyncClient
    dispatcher: Dispatcher
    model: ScriptedModel
    clock: SteppedClock
    database: Database
    tenant: str
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)

    def request(self, method: str, path: str, status: int, body: Any = None, **query: Any) -> Json:
        """Return the answer's JSON, after a check of its status."""
        return ok(self.run(self.api.request(method, f"/v1{path}", json=body, params=query)), status)

    def request_either(self, method: str, path: str, statuses: set[int], body: Any = None) -> None:
        """Send a request that may succeed or fail with one of `statuses`."""
        answer = self.run(self.api.request(method, f"/v1{path}", json=body))
        assert answer.status_code in statuses, answer.text

    def snapshot(self, chat_id: str) -> Snapshot:
        return self.run(self._snapshot(chat_id))  # type: ignore[no-any-return]  # `run` returns Any

    def tables(self, chat_id: str, line_id: str) -> Tables:
        """Return the rows of a line's narratives, diary entries and scenes."""

        async def read() -> Tables:
            async with self.database.raw() as connection:
                return await read_tables(connection, chat_key(self.tenant, chat_id), UUID(line_id))

        found: Tables = self.run(read())
        return found

    def contexts(self, chat_id: str, **query: Any) -> dict[str, Json]:
        """Return the context in each format, always at the same time of day and without the line's id."""

        async def read() -> dict[str, Json]:
            path = f"/v1/chats/{chat_id}/context"
            return {
                wanted: ok(await self.api.get(path, params={"format": wanted, "now": NOW, **query}), 200)
                for wanted in FORMATS
            }

        contexts: dict[str, Json] = self.run(read())
        for context in contexts.values():
            del context["line"]
        return contexts

    async def _snapshot(self, chat_id: str) -> Snapshot:
        ref = ChatRef(self.tenant, chat_id, chat_key(self.tenant, chat_id))
        async with self.database.unit_of_work() as db_session:
            window = await read_window(db_session, await lock_head(db_session, ref))
            row = dict(await db_session.raw.fetchrow(_ROW, ref.key) or {})
            line = (ref.key, UUID(row["line"]))
            messages = [dict(found) for found in await db_session.raw.fetch(_MESSAGES, *line)]
            memos = [dict(found) for found in await db_session.raw.fetch(_MEMOS, *line)]
            work = {found["key"]: dict(found) for found in await db_session.raw.fetch(_WORK, *line)}
        path = f"/v1/chats/{chat_id}"
        listed, book, context, sessions = await asyncio.gather(
            self.api.get(f"{path}/messages", params={"limit": 500}),
            self.api.get(f"{path}/memos", params={"limit": 500}),
            self.api.get(f"{path}/context", params={"now": NOW}),
            self.api.get(f"{path}/sessions", params={"limit": 500}),
        )
        return Snapshot(
            row={name: orjson.loads(row[name]) if name in _JSON and row[name] else row[name] for name in row},
            messages=messages,
            memos=memos,
            work=work,
            window=window,
            listed=ok(listed, 200)["items"],
            book=ok(book, 200)["items"],
            context=ok(context, 200),
            sessions=ok(sessions, 200)["items"],
            words=WORD.findall(context.text),
        )


_JSON = ("last_cut", "memo_window")


def echo_memo(request: Request) -> str:
    """Return a memo that repeats each unique word of the prompt, or NONE if there is none."""
    content = str(request["messages"][-1]["content"])
    words = WORD.findall(content.partition("<messages>")[2])
    half = (len(words) + 1) // 2
    parts = [part for part in (words[:half], words[half:]) if part]
    lines = [
        f"【Highlight {n}】: (milestone) They spoke of {', '.join(part)}." for n, part in enumerate(parts, start=1)
    ]
    return "\n".join(lines) or "NONE"
