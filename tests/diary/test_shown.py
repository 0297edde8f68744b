"""The diary in the prompt is a cache: after each step it is what entries and versions give, held to the last cut."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import asyncpg
import httpx
import orjson
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.diary.folding import step_hash
from app.diary.wording import HEADING, RECENT_HEADING, cut_to_lines, word_diary, word_entry
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.background import settle
from tests.diary.diaries import change, discard, entries, keep_diary, prompts, save, write
from tests.scripted_model import Request, ScriptedModel, refuses
from tests.slowness import SLOWNESS
from tests.talk import Json, append, cut_off, edit, get, ok, put, talk

PATIENCE_S = 60 * SLOWNESS

picks = st.integers(0, 99)
steps = st.tuples(
    st.one_of(
        st.sampled_from(["write", "save", "talk", "settle", "settle"]),
        st.sampled_from(["edit", "discard", "reword", "cut off", "restore"]),
        st.sampled_from(["lines", "switch", "fail"]),
    ),
    picks,
)


class Walk:
    """A chat that something happens to, step by step."""

    def __init__(
        self,
        api: httpx.AsyncClient,
        dispatcher: Dispatcher,
        model: ScriptedModel,
        clock: SteppedClock,
        database: Database,
    ) -> None:
        self._api, self._dispatcher, self._model, self._clock, self._database = api, dispatcher, model, clock, database
        self._messages, self._words = 0, 0
        self._enabled, self._lines = True, 0
        self._held: tuple[int, Json] = (0, {})

    async def begin(self, tenant: str) -> None:
        """A diary of which the older part is folded, some entries of the service's in it."""
        self._key = chat_key(tenant, "c")
        await self._api.delete("/v1/chats/c")
        await keep_diary(self._api, lines=8, auto_write_turns=2)
        history = {"keep_messages": 2, "grow_messages": 4, "edges": "every_message"}
        await put(self._api, settings={"history": history}, status=200)
        ok(await self._api.post("/v1/chats/c/checkpoints", json={"name": "begin"}), 201)
        self._messages = 0
        self._held = (0, {})
        await self._read_settings()
        for step in ("write", "talk", "settle", "save", "talk", "settle", "save", "settle"):
            await self.take(step, 3)

    async def take(self, step: str, pick: int) -> None:
        self._model.otherwise = refuses(503) if step == "fail" else self._answer
        if step in ("edit", "discard"):
            known = await entries(self._api)
            if known:
                await self._change(step, str(known[pick % len(known)]["id"]), pick)
            return
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "write": lambda: write(self._api, self._word(pick)),
            "save": lambda: save(self._api, self._word(pick)),
            "talk": lambda: self._talk(1 + pick % 4),
            "settle": self._settle,
            "fail": self._settle,
            "reword": lambda: self._reword(pick),
            "cut off": lambda: self._cut_off(pick),
            "restore": lambda: self._restore(pick),
            "lines": lambda: self._set(lines=1 + pick % 12),
            "switch": lambda: self._set(enabled=not self._enabled),
        }
        await ways[step]()

    async def check(self) -> None:
        told = await self._database_rows(
            "SELECT * FROM diary_entries WHERE chat_key = $1 AND line_id = $2 ORDER BY number"
        )
        versions = await self._database_rows(
            "SELECT * FROM narrative_versions WHERE chat_key = $1 AND line_id = $2 AND layer = 'diary'"
        )
        true = [row for row in told if row["deleted_at"] is None and self._is_valid(row)]
        valid = _list_valid(true, versions) if self._enabled else {}
        anchor_seq, held = await self._read_held()
        is_begun = any(row["at_seq"] for row in told)
        former = self._held[1] if is_begun and anchor_seq == self._held[0] else {}
        if former and "lost" not in former and former["version"] in (None, *valid):
            assert held == former
        elif former and self._enabled and former.get("lost", {}).get("version") in valid:
            assert held == former["lost"]
        if "lost" in held and self._enabled:
            assert await self._is_fold_due()
        self._held = (anchor_seq, held)
        folded = "" if held["version"] is None else valid[held["version"]]
        worded = [_word(row) for row in true if row["number"] in held["numbers"]]
        later = [row for row in true if row["number"] > held["after"] and row["number"] not in held["numbers"]]
        recent = cut_to_lines("", [_word(row) for row in later], 20)
        assert await prompts(self._api) == (
            word_diary(HEADING, cut_to_lines(folded, worded, self._lines)),
            word_diary(RECENT_HEADING, recent),
        )
        assert len({row["number"] for row in told}) == len(told)

    async def _is_fold_due(self) -> bool:
        """Whether a fold is to be made, or has failed for good; until then a diary can be without a lost fold."""
        async with self._database.raw() as connection:
            return bool(
                await connection.fetchval(
                    "SELECT count(*) FROM work WHERE owner_key = $1 AND layer = 'diary' AND key LIKE 'fold:%'",
                    self._key,
                )
            )

    async def _read_held(self) -> tuple[int, Json]:
        """Return the anchor, and what the diary holds since the anchor is there."""
        (row,) = await self._database_rows(
            "SELECT anchor_seq, (context_cache -> 'diary')::text AS diary FROM chats"
            " WHERE chat_key = $1 AND line_id = $2"
        )
        if row["diary"] is None:
            return row["anchor_seq"], {"version": None, "covered": 0, "after": 0, "numbers": []}
        diary = orjson.loads(row["diary"])
        assert diary["anchor_seq"] == row["anchor_seq"]
        return row["anchor_seq"], diary["characters"]["Kai"]["held"]

    def _is_valid(self, row: asyncpg.Record) -> bool:
        clean = self._enabled and row["source_hash"] == row["current_hash"]
        return not row["hidden"] and (row["origin"] != "model" or clean)

    def _answer(self, request: Request) -> str:
        self._words += 1
        return f"04/01: Answer {self._words}, which I keep.\nAnd a second line."

    def _word(self, pick: int) -> str:
        """Return a new text of one or two lines."""
        self._words += 1
        return f"Words {self._words} of mine.{' And more.' * (pick % 3)}" + "\nAnd a line." * (pick % 2)

    async def _change(self, step: str, entry_id: str, pick: int) -> None:
        if step == "edit":
            await change(self._api, entry_id, self._word(pick))
        else:
            await discard(self._api, entry_id)

    async def _talk(self, turns: int) -> None:
        first, self._messages = self._messages + 1, self._messages + 2 * turns
        await append(self._api, talk(first, self._messages))

    async def _settle(self) -> None:
        self._clock.step(3_600)
        await settle(self._dispatcher, self._clock)

    async def _reword(self, pick: int) -> None:
        living = (await get(self._api, "/messages", limit=500))["items"]
        if living:
            await edit(self._api, living[pick % len(living)]["id"], content=self._word(pick))

    async def _cut_off(self, pick: int) -> None:
        head_seq = (await get(self._api, ""))["head_seq"]
        await cut_off(self._api, max(1, head_seq - pick % 12))

    async def _set(self, **diary: Any) -> None:
        await put(self._api, settings={"diary": diary}, status=200)
        await self._read_settings()

    async def _read_settings(self) -> None:
        diary = (await get(self._api, ""))["settings"]["diary"]
        self._enabled, self._lines = diary["enabled"], diary["lines"]

    async def _restore(self, pick: int) -> None:
        """Go back to the last checkpoint, then freeze what is there for the next time."""
        self._held = (0, {})
        if pick % 2:
            ok(await self._api.post("/v1/chats/c/checkpoints/begin/restore"), 201)
            await self._read_settings()
        else:
            ok(await self._api.delete("/v1/chats/c/checkpoints/begin"), 204)
            ok(await self._api.post("/v1/chats/c/checkpoints", json={"name": "begin"}), 201)

    async def _database_rows(self, statement: str) -> Sequence[asyncpg.Record]:
        line = (await get(self._api, ""))["line"]
        async with self._database.raw() as connection:
            return await connection.fetch(statement, self._key, line)


def _word(row: asyncpg.Record) -> str:
    return word_entry(row["content"], f"{row['dated_at']:%m/%d}")


def _list_valid(true: Sequence[asyncpg.Record], versions: Sequence[asyncpg.Record]) -> dict[int, str]:
    """Return the texts of the versions of which every step back to the first says what it was made from."""
    by_number = {row["version"]: row for row in versions}
    number = next((row["version"] for row in versions if row["current"]), None)
    chain = []
    while number is not None:
        chain.append(by_number[number])
        number = by_number[number]["base_version"]
    found = {}
    for row in reversed(chain):
        members = [
            (one["number"], one["content"]) for one in true if row["first_unit"] <= one["number"] <= row["last_unit"]
        ]
        if step_hash(members) != row["source_hash"]:
            break
        found[row["version"]] = row["text"]
    return found


async def test_the_cache_equals_entries_and_versions_after_each_step(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    walk, loop = Walk(api, dispatcher, model, clock, database), asyncio.get_running_loop()

    def do(what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, loop).result(PATIENCE_S)

    @settings(
        max_examples=20,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(steps, min_size=4, max_size=14))
    def wander(taken: list[tuple[str, int]]) -> None:
        do(walk.begin(tenant))
        for step, pick in taken:
            do(walk.take(step, pick))
            do(walk.check())

    await asyncio.to_thread(wander)
