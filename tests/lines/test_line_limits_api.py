"""How many lines and checkpoints a chat has: what is refused, what a re-import deletes, what a person deletes."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.settings import Settings
from app.lines.service import MOST_PRUNED
from app.main import create_app
from tests.book import ask, book
from tests.chats.rich import make_rich_chat, rows
from tests.conftest import SETTLE_S, client_of
from tests.talk import Json, append, get, ok, said, talk

MAX_LINES, MAX_CHECKPOINTS, KEPT = 8, 3, 2


@pytest.fixture
async def limited(database_url: str, clock: SteppedClock, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service with small limits."""
    settings = Settings(
        database_url=database_url,
        settle_s=SETTLE_S,
        max_lines=MAX_LINES,
        max_checkpoints=MAX_CHECKPOINTS,
        kept_replaced_lines=KEPT,
        _env_file=None,
    )
    app = create_app(settings, clock=clock)
    async with client_of(app, key) as client:
        yield client
    await app.state.database.close()


async def lines(api: httpx.AsyncClient) -> list[str]:
    """The lines besides checkpoints, the newest first."""
    return [line["line"] for line in (await get(api, "/lines", limit=500))["items"]]


async def replace(api: httpx.AsyncClient, status: int = 200) -> Json:
    """Re-import the chat with its first two messages swapped."""
    first, second, *rest = (await get(api, "/messages", limit=500))["items"]
    listed = [{"id": one["id"], "role": one["role"], "content": one["content"]} for one in (second, first, *rest)]
    return ok(await api.put("/v1/chats/c/messages", json={"messages": listed}), status)


async def checkpoint(api: httpx.AsyncClient, name: str, status: int = 201) -> Json:
    return ok(await api.post("/v1/chats/c/checkpoints", json={"name": name}), status)


async def restore(api: httpx.AsyncClient, name: str, status: int = 201) -> Json:
    return ok(await api.post(f"/v1/chats/c/checkpoints/{name}/restore"), status)


async def lines_of_rows(database: Database, tenant: str) -> set[str]:
    """The lines that any row of the chat `c` has, in every table that has lines."""
    return {row["line_id"] for found in (await rows(database, tenant)).values() for row in found}


# --- what is refused ---


async def test_the_last_checkpoint_is_made_and_the_next_refused(limited: httpx.AsyncClient) -> None:
    await append(limited, talk(1, 2))
    for n in range(MAX_CHECKPOINTS):
        await checkpoint(limited, f"n{n}")
    assert (await checkpoint(limited, "more", 409))["code"] == "too_many_checkpoints"
    assert (await checkpoint(limited, "n0", 409))["code"] == "checkpoint_taken"
    ok(await limited.delete("/v1/chats/c/checkpoints/n1"), 204)
    await checkpoint(limited, "more")


async def test_the_last_line_is_made_and_the_next_refused(limited: httpx.AsyncClient) -> None:
    await append(limited, talk(1, 2))
    await checkpoint(limited, "dusk")
    for _ in range(MAX_LINES - 1):
        await restore(limited, "dusk")
    before = await lines(limited)
    assert len(before) == MAX_LINES
    for answer in (await restore(limited, "dusk", 409), await replace(limited, 409)):
        assert answer["code"] == "too_many_lines"
    assert await lines(limited) == before
    ok(await limited.delete(f"/v1/chats/c/lines/{before[3]}"), 204)
    await replace(limited)
    assert len(await lines(limited)) == MAX_LINES


# --- what a person deletes ---


async def test_a_deleted_line_leaves_no_row(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await make_rich_chat(api, dispatcher, clock, database, tenant)
    (first,) = await lines(api)
    await checkpoint(api, "dusk")
    await restore(api, "dusk")
    ok(await api.delete(f"/v1/chats/c/lines/{first}"), 204)
    (current,) = await lines(api)
    frozen = (await get(api, "/checkpoints/dusk"))["line"]
    assert await lines_of_rows(database, tenant) == {current, frozen}
    assert (await get(api, f"/lines/{first}", 404))["code"] == "line_not_found"
    ok(await api.delete("/v1/chats/c/checkpoints/dusk"), 204)
    assert (await get(api, f"/lines/{current}"))["parent"] is None, "the parent of the deleted checkpoint is gone"


async def test_neither_current_line_nor_checkpoint_is_deleted(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    frozen = (await checkpoint(api, "dusk"))["line"]
    (current,) = await lines(api)
    for line, code in ((current, "line_is_current"), (frozen, "line_is_checkpoint")):
        assert ok(await api.delete(f"/v1/chats/c/lines/{line}"), 409)["code"] == code
    unknown = "01a1fd8d-0000-7000-8000-000000000000"
    assert ok(await api.delete(f"/v1/chats/c/lines/{unknown}"), 404)["code"] == "line_not_found"


# --- what a re-import deletes ---


async def test_a_reimport_keeps_the_newest_replaced_lines(
    limited: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await append(limited, talk(1, 16))
    made = await lines(limited)
    for _ in range(5):
        clock.step(5)
        await dispatcher.drain()
        (memo, *_) = await book(limited)
        await ask(limited, "POST", f"/{memo['id']}/regenerate", 202, {"instruction": "Name the lamp."})
        made.append((await replace(limited))["line"])
    assert await lines(limited) == made[: -KEPT - 2 : -1]
    assert await lines_of_rows(database, tenant) == set(made[-KEPT - 1 :])


async def test_a_lower_setting_is_reached_step_by_step(api: httpx.AsyncClient, limited: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    for _ in range(10):
        await replace(api)
    counts = []
    for _ in range(4):
        await replace(limited)
        counts.append(len(await lines(api)))
    assert counts == [8, 5, 3, 3], f"a re-import deletes at most {MOST_PRUNED} lines and makes one"


@dataclass
class Reference:
    """Which lines remain, slowly: each one with what made it and whether a re-import replaced it, the oldest first."""

    current: str
    chosen: dict[str, bool] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)

    def leave(self, line: str, *, by_reimport: bool) -> None:
        """Make another line the current one; a line that is new is chosen unless a re-import makes it."""
        if by_reimport and not self.chosen.setdefault(self.current, False):
            self.replaced.append(self.current)
        self.chosen.setdefault(self.current, False)
        self.chosen[line] = not by_reimport
        if line in self.replaced:
            self.replaced.remove(line)
        self.current = line
        while len(self.replaced) > KEPT:
            del self.chosen[self.replaced.pop(0)]


@pytest.mark.parametrize("seed", range(6))
async def test_the_lines_that_remain_are_those_of_the_reference(
    limited: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock, seed: int
) -> None:
    chance = random.Random(seed)
    await append(limited, talk(1, 4))
    (first,) = await lines(limited)
    reference = Reference(first, {first: False})
    frozen = (await checkpoint(limited, "dusk"))["line"]
    for n in range(30):
        clock.step(chance.choice([0, 1]))
        step = chance.choice(["replace", "replace", "replace", "restore", "switch", "append"])
        others = sorted(set(reference.chosen) - {reference.current})
        if step == "restore" and len(others) < MAX_LINES - KEPT - 1:
            reference.leave((await restore(limited, "dusk"))["line"], by_reimport=False)
        elif step == "switch" and others:
            line = chance.choice(others)
            ok(await limited.post(f"/v1/chats/c/lines/{line}/switch"), 200)
            reference.leave(line, by_reimport=False)
        elif step == "replace" and len(others) < MAX_LINES - 1:
            reference.leave((await replace(limited))["line"], by_reimport=True)
        else:
            await append(limited, [said(100 + n)])
        assert set(await lines(limited)) == set(reference.chosen)
    assert await lines_of_rows(database, tenant) == {*reference.chosen, frozen}
