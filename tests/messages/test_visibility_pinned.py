"""Auto-hide never hides what a person has shown again, and its own hiding differs from a person's."""

from typing import Any

import httpx

from app.chats.heads import lock_line
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.messages.editing import hide_by_scenes
from tests.statements import watched
from tests.talk import append, edit, get, hide, ok, said, soft_delete, talk


async def let_scenes(
    database: Database,
    tenant: str,
    clock: SteppedClock,
    *,
    hidden: list[tuple[int, int]],
    shown: list[tuple[int, int]] | None = None,
) -> int:
    """Hide and show ranges of the chat `c` as scenes do; for how many messages that is new."""
    key = chat_key(tenant, "c")
    async with database.raw() as connection:
        line = await connection.fetchval(
            "SELECT line_id FROM chats WHERE chat_key = $1 AND line_status = 'current'", key
        )
    async with database.unit_of_work() as db_session:
        head = await lock_line(db_session, key, line)
        assert head is not None
        return await hide_by_scenes(db_session, head, hidden, shown or [], now=clock())


async def hidden_by(api: httpx.AsyncClient) -> list[str | None]:
    items: list[dict[str, Any]] = (await get(api, "/messages"))["items"]
    return [message["hidden_by"] for message in items]


async def test_scenes_hide_visible_messages_and_show_only_those(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 5))
    await hide(api, (2, 2), (4, 4))
    assert await let_scenes(database, tenant, clock, hidden=[(1, 3)]) == 2
    assert await hidden_by(api) == ["scenes", "user", "scenes", "user", None]
    assert await let_scenes(database, tenant, clock, hidden=[(1, 3)]) == 0
    assert await let_scenes(database, tenant, clock, hidden=[(1, 1)], shown=[(2, 5)]) == 1
    assert await hidden_by(api) == ["scenes", "user", None, "user", None]


async def test_any_number_of_ranges_is_one_statement(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 12))
    await let_scenes(database, tenant, clock, hidden=[(5, 6)])
    async with watched(database) as statements:
        changed = await let_scenes(database, tenant, clock, hidden=[(1, 2), (8, 9), (11, 12)], shown=[(3, 7), (10, 10)])
    assert changed == 8
    assert len([text for text in statements.asked if text.startswith("UPDATE messages")]) == 1


async def test_tombstones_are_neither_hidden_nor_shown(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 3))
    await soft_delete(api, "m2")
    assert await let_scenes(database, tenant, clock, hidden=[(1, 3)]) == 2


async def test_the_history_counts_what_scenes_hide(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 20))
    await let_scenes(database, tenant, clock, hidden=[(1, 4)])
    assert (await get(api, "/context"))["history"]["messages"] == 16


async def test_a_message_shown_by_a_person_is_not_hidden_by_scenes(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 4))
    await let_scenes(database, tenant, clock, hidden=[(1, 4)])
    await edit(api, "m1", hidden=False)
    await hide(api, (2, 2), hidden=False)
    assert await let_scenes(database, tenant, clock, hidden=[(1, 4)]) == 0
    assert await hidden_by(api) == [None, None, "scenes", "scenes"]


async def test_scenes_do_not_hide_what_a_person_has_shown_again(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 4))
    await hide(api, (1, 2))
    await let_scenes(database, tenant, clock, hidden=[(1, 4)])
    await hide(api, (3, 3))
    await edit(api, "m4", hidden=True)
    assert await hidden_by(api) == ["user"] * 4
    await edit(api, "m1", hidden=False)
    await hide(api, (2, 3), hidden=False)
    assert await let_scenes(database, tenant, clock, hidden=[(1, 4)]) == 0
    assert await hidden_by(api) == [None, None, None, "user"]


async def test_hiding_a_message_again_unpins_its_visibility(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 2))
    await let_scenes(database, tenant, clock, hidden=[(1, 2)])
    await hide(api, (1, 2), hidden=False)
    await edit(api, "m1", hidden=True)
    await hide(api, (2, 2))
    assert await hidden_by(api) == ["user", "user"]
    async with database.raw() as connection:
        kept = await connection.fetch(
            "SELECT visibility_pinned FROM messages WHERE chat_key = $1", chat_key(tenant, "c")
        )
    assert [row["visibility_pinned"] for row in kept] == [False, False]


async def test_showing_a_visible_message_does_not_pin_it(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 2))
    await edit(api, "m1", hidden=False)
    await hide(api, (2, 2), hidden=False)
    assert await let_scenes(database, tenant, clock, hidden=[(1, 2)]) == 2


async def test_null_gives_a_message_back_to_the_scenes(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 3))
    assert await let_scenes(database, tenant, clock, hidden=[(1, 2)]) == 2
    await edit(api, "m1", hidden=False)
    assert (await edit(api, "m2", hidden=None))["hidden_by"] == "scenes"
    await edit(api, "m3", hidden=True)
    await edit(api, "m1", hidden=None)
    await edit(api, "m3", hidden=None)
    assert await hidden_by(api) == [None, "scenes", None]
    assert await let_scenes(database, tenant, clock, hidden=[(1, 3)]) == 2
    assert await hidden_by(api) == ["scenes"] * 3


async def test_another_edit_does_not_change_who_hides_a_message(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 2))
    await let_scenes(database, tenant, clock, hidden=[(1, 2)])
    await edit(api, "m1", hidden=False)
    await edit(api, "m1", content="Something else.")
    await edit(api, "m2", content="Something else.")
    assert await let_scenes(database, tenant, clock, hidden=[(1, 2)]) == 0
    assert await hidden_by(api) == [None, "scenes"]


async def test_a_message_moved_by_a_reimport_stays_kept(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 4))
    await let_scenes(database, tenant, clock, hidden=[(1, 4)])
    await edit(api, "m3", hidden=False)
    inserted = [said(1), said(9), said(2), said(3), said(4)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": inserted}), 200)
    assert await let_scenes(database, tenant, clock, hidden=[(1, 5)]) == 1  # the one that was inserted
    assert await hidden_by(api) == ["scenes", "scenes", "scenes", None, "scenes"]
