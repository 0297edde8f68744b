"""After each step in one of three chats, the shared diary is what the rows of all give, held to the last cut."""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpx
import orjson
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.diary.diaries import prompts
from tests.diary.sharing import begin, entries_of, save_in, write_in
from tests.slowness import SLOWNESS
from tests.talk import Json, ok, talk

PATIENCE_S = 60 * SLOWNESS
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LINES, RECENT_LINES = 14, 20
CHATS = ("c", "d", "e")

steps = st.tuples(
    st.sampled_from(
        ["write", "write", "save", "discard", "reword", "undo", "cut off", "restore", "switch", "cut", "cut"]
    ),
    st.sampled_from(CHATS),
    st.integers(0, 99),
)

_ROWS = """
    SELECT e.*, c.chat_id FROM diary_entries e JOIN chats c USING (chat_key, line_id)
    WHERE c.chat_key = ANY($1::uuid[]) AND c.line_status = 'current' AND e.deleted_at IS NULL AND NOT e.hidden
    ORDER BY e.created_at, e.entry_id"""

_CACHE = """
    SELECT anchor_seq, line_id, (context_cache #> '{diary,characters,Kai}')::text AS kai FROM chats
    WHERE chat_key = $1 AND line_status = 'current'"""


class Walk:
    """Three chats that share a diary."""

    def __init__(self, api: httpx.AsyncClient, clock: SteppedClock, database: Database, tenant: str) -> None:
        self._api, self._clock, self._database = api, clock, database
        self._keys = {chat_id: chat_key(tenant, chat_id) for chat_id in CHATS}
        self._former: dict[str, tuple[Any, int, Json]] = {}
        self._words = 0

    async def begin(self) -> None:
        self._former = {}
        for chat_id in CHATS:
            await self._api.delete(f"/v1/chats/{chat_id}")
            await begin(self._api, chat_id, lines=LINES)
            await write_in(self._api, chat_id, self._word(1))
            ok(await self._api.post(f"/v1/chats/{chat_id}/checkpoints", json={"name": "begin"}), 201)

    async def take(self, step: str, chat_id: str, pick: int) -> None:
        self._clock.step(pick % 3)
        path = f"/v1/chats/{chat_id}"
        chat = ok(await self._api.get(path), 200)
        match step:
            case "write":
                await write_in(self._api, chat_id, self._word(pick))
            case "save":
                await save_in(self._api, chat_id, self._word(pick))
            case "discard":
                await self._discard(chat_id, pick)
            case "reword" | "undo":
                await self._reword(chat_id, pick, is_undo=step == "undo")
            case "cut":
                await self._cut(chat_id, chat["head_seq"])
            case _:
                await self._leave(step, path, max(2, chat["head_seq"] - pick % 3), pick)

    async def _discard(self, chat_id: str, pick: int) -> None:
        if known := await entries_of(self._api, chat_id):
            ok(await self._api.delete(f"/v1/chats/{chat_id}/diary/{known[pick % len(known)]['id']}"), 204)

    async def _reword(self, chat_id: str, pick: int, *, is_undo: bool) -> None:
        path = f"/v1/chats/{chat_id}/messages"
        items = ok(await self._api.get(path, params={"limit": 500}), 200)["items"]
        message = items[pick % len(items)]
        text = talk(message["seq"], message["seq"])[0]["content"] if is_undo else f"{pick}."
        ok(await self._api.patch(f"{path}/{message['id']}", json={"content": text}), 200)

    async def _leave(self, step: str, path: str, from_seq: int, pick: int) -> None:
        """Cut off the end of the line, or leave the line."""
        if step == "cut off":
            ok(await self._api.delete(f"{path}/messages", params={"from_seq": from_seq}), 204)
        elif step == "restore":
            ok(await self._api.post(f"{path}/checkpoints/begin/restore"), 201)
        else:
            lines = ok(await self._api.get(f"{path}/lines"), 200)["items"]
            assert (await self._api.post(f"{path}/lines/{lines[pick % len(lines)]['line']}/switch")).is_success

    async def _cut(self, chat_id: str, head_seq: int) -> None:
        messages = [one | {"id": f"n{one['id']}"} for one in talk(head_seq + 1, head_seq + 2)]
        ok(await self._api.post(f"/v1/chats/{chat_id}/messages", json={"messages": messages}), 201)
        ok(await self._api.post(f"/v1/chats/{chat_id}/sessions/break"), 201)

    async def check(self) -> None:
        async with self._database.raw() as connection:
            rows = await connection.fetch(_ROWS, list(self._keys.values()))
            caches = {chat_id: (await connection.fetch(_CACHE, key))[0] for chat_id, key in self._keys.items()}
        for chat_id in CHATS:
            cached = orjson.loads(caches[chat_id]["kai"])
            own = sorted((row for row in rows if row["chat_id"] == chat_id), key=lambda row: row["number"])
            others = [row for row in rows if row["chat_id"] != chat_id]
            line_id, anchor_seq, shared = caches[chat_id]["line_id"], caches[chat_id]["anchor_seq"], cached["shared"]
            former_id, former_seq, former = self._former.get(chat_id, (None, 0, {}))
            if (former_id, former_seq) == (line_id, anchor_seq):
                assert shared == former, "nothing is chosen again until a cut"
            elif former_id == line_id:
                mine = [row for row in own if row["number"] in cached["held"]["numbers"]]
                chosen = [str(row["entry_id"]) for row in _fit(others, _room(mine))]
                assert [entry_id for _, entry_id in shared["held"]] == chosen, "a cut chooses the newest"
            self._former[chat_id] = line_id, anchor_seq, shared
            assert await prompts(self._api, chat_id) == _expect(cached, own, others)

    def _word(self, pick: int) -> str:
        self._words += 1
        return f"Words {self._words}." + "\nAnd a line." * (pick % 3)


def _expect(cached: Json, own: Sequence[asyncpg.Record], others: Sequence[asyncpg.Record]) -> tuple[str, str]:
    """Return the two segments, made line by line."""
    numbers, ids = cached["held"]["numbers"], [entry_id for _, entry_id in cached["shared"]["held"]]
    after = cached["shared"]["after"]
    mine = [row for row in own if row["number"] in numbers]
    theirs = _fit([row for row in others if str(row["entry_id"]) in ids], _room(mine))
    left = LINES - len(_lines(theirs)) - bool(theirs)
    mine = _fit(mine, max(left, 0))  # without own entries, those of other chats can fill all lines
    newer_own = [row for row in own if row["number"] > cached["held"]["after"] and row["number"] not in numbers]
    newer = [
        row
        for row in others
        if str(row["entry_id"]) not in ids and (after is None or [_us(row), str(row["entry_id"])] > after)
    ]
    return _word("## Diary", mine, theirs), _word("## Diary, newest entries", newer_own, newer, limit=RECENT_LINES)


def _room(own: Sequence[asyncpg.Record]) -> int:
    """Return the lines that the entries of other chats may take."""
    return max(LINES // 2, LINES - len(_lines(own)) - bool(own))


def _fit(rows: Sequence[asyncpg.Record], room: int) -> list[asyncpg.Record]:
    """Return the newest rows that fit; each has at most four lines, which always fit."""
    return next([*rows[at:]] for at in range(len(rows) + 1) if len(_lines(rows[at:])) <= room)


def _lines(rows: Sequence[asyncpg.Record]) -> list[str]:
    return "\n\n".join(f"##\n{row['content']}" for row in rows).split("\n") if rows else []


def _word(
    heading: str, own: Sequence[asyncpg.Record], others: Sequence[asyncpg.Record], limit: int | None = None
) -> str:
    pieces, latest = [], 0
    for row in own:
        latest = max(latest, _us(row))
        pieces.append((latest, 0, row, ""))
    pieces += [(_us(row), 1, row, ", in another conversation") for row in others]
    pieces.sort(key=lambda piece: piece[:2])
    rows = [row for _, _, row, _ in pieces]
    shown = len(_fit(rows, limit)) if limit is not None else len(rows)
    texts = [
        f"## {row['dated_at']:%m/%d} — memo entry{place}\n{row['content']}"
        for _, _, row, place in pieces[len(pieces) - shown :]
    ]
    return "\n\n".join((heading, *texts)) if texts else ""


def _us(row: asyncpg.Record) -> int:
    return int((row["created_at"] - EPOCH) / timedelta(microseconds=1))


async def test_the_shared_diary_equals_all_rows_after_each_step(
    api: httpx.AsyncClient, clock: SteppedClock, database: Database, tenant: str
) -> None:
    walk, loop = Walk(api, clock, database, tenant), asyncio.get_running_loop()

    def do(what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, loop).result(PATIENCE_S)

    @settings(
        max_examples=15,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(steps, min_size=6, max_size=16))
    def wander(taken: list[tuple[str, str, int]]) -> None:
        do(walk.begin())
        for step, chat_id, pick in taken:
            do(walk.take(step, chat_id, pick))
            do(walk.check())

    await asyncio.to_thread(wander)
