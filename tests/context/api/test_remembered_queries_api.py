"""What the queries of facts and blocks found is remembered in the process, until it may have changed."""

from collections.abc import Awaitable, Callable

import httpx
import pytest
from fastapi import FastAPI

from tests.blocks.asking import put_block
from tests.diary import sharing
from tests.facts.asking import USER, begin, checkpoint, delete_fact, learn_wide, note, restore, set_fact
from tests.memories.asking import change, delete, write
from tests.statements import watched
from tests.talk import CHAT, Json, add_swipe, append, context, cut_off, edit, ok, put, select_swipe, soft_delete, talk


async def ask(app: FastAPI, api: httpx.AsyncClient, chat_id: str = "c") -> tuple[Json, list[str]]:
    """The context, and the statements that it took."""
    async with watched(app.state.database) as statements:
        found = ok(await api.get(f"/v1/chats/{chat_id}/context"), 200)
    return found, statements.asked


async def prepare(app: FastAPI, api: httpx.AsyncClient) -> None:
    """Two chats of one user that know something in each scope; what the chat `c` knows is remembered."""
    await learn_wide(api)
    await learn_wide(api, "other")
    for chat_id in ("c", "other"):
        await append(api, talk(1, 3), chat_id)
        await note(api, f"of {chat_id}", "a lamp", chat_id=chat_id)
        await append(api, talk(4, 5), chat_id)
    await set_fact(api, "home", "Lisbon")
    await set_fact(api, "trade", "ferrywoman", under=USER)
    await set_fact(api, "moon", "There are two.", under="/v1")
    await put_block(api, "She is Mira.")
    await put_block(api, "She is nobody.", under=USER)
    await put_block(api, "The war is over.", label="context", under="/v1")
    memory = await write(api, "Tomas sold the ferry.", importance=0.9, under=USER)
    await change(api, memory["id"], under=USER, tags=["ferry"])
    await ask(app, api)
    _, (statement,) = await ask(app, api)
    assert "teachings" not in statement


async def find_memory(api: httpx.AsyncClient) -> str:
    (memory,) = ok(await api.get(f"{USER}/memories"), 200)["items"]
    return str(memory["id"])


async def set_in_chat(api: httpx.AsyncClient) -> None:
    await set_fact(api, "home", "Porto", status=200)


async def set_for_user(api: httpx.AsyncClient) -> None:
    await set_fact(api, "trade", "smith", under=USER, status=200)


async def set_for_character(api: httpx.AsyncClient) -> None:
    await set_fact(api, "trade", "nurse", under=f"{USER}/characters/Kai")


async def set_for_tenant(api: httpx.AsyncClient) -> None:
    await put_block(api, "The war goes on.", label="context", under="/v1", status=200)


async def delete_for_tenant(api: httpx.AsyncClient) -> None:
    await delete_fact(api, "moon", under="/v1")


async def learn_elsewhere(api: httpx.AsyncClient) -> None:
    await note(api, "hair", "red", chat_id="other", message_id="m4")


async def edit_elsewhere(api: httpx.AsyncClient) -> None:
    ok(await api.patch("/v1/chats/other/messages/m4", json={"content": "Nothing."}), 200)


async def cut_elsewhere(api: httpx.AsyncClient) -> None:
    assert (await api.delete("/v1/chats/other/messages", params={"from_seq": 3})).is_success


async def erase_elsewhere(api: httpx.AsyncClient) -> None:
    assert (await api.delete("/v1/chats/other")).is_success


async def swipe_here(api: httpx.AsyncClient) -> None:
    await add_swipe(api, "m4", "Something else.")


async def cut_here(api: httpx.AsyncClient) -> None:
    await cut_off(api, 4)


async def rename(api: httpx.AsyncClient) -> None:
    await set_for_character(api)
    await context(api)
    ok(await api.post(f"{CHAT}/characters/Kai/rename", json={"name": "Ilse"}), 200)


async def leave_the_user(api: httpx.AsyncClient) -> None:
    await put(api, status=200, user_id="nell")


async def leave_out_memories(api: httpx.AsyncClient) -> None:
    await put(api, status=200, settings={"blocks": {"from_memories": False}})


async def make_less_important(api: httpx.AsyncClient) -> None:
    await change(api, await find_memory(api), importance=0.1)


async def archive(api: httpx.AsyncClient) -> None:
    await change(api, await find_memory(api), under=USER, archived=True)


async def forget(api: httpx.AsyncClient) -> None:
    await delete(api, await find_memory(api), under=USER)


async def create_again(api: httpx.AsyncClient) -> None:
    assert (await api.delete("/v1/chats/c")).is_success
    await begin(api)
    await append(api, talk(1, 2))


CHANGES: list[Callable[[httpx.AsyncClient], Awaitable[None]]] = [
    set_in_chat,
    set_for_user,
    set_for_character,
    set_for_tenant,
    delete_for_tenant,
    learn_elsewhere,
    edit_elsewhere,
    cut_elsewhere,
    erase_elsewhere,
    swipe_here,
    cut_here,
    rename,
    leave_the_user,
    leave_out_memories,
    make_less_important,
    archive,
    forget,
    create_again,
]


@pytest.mark.parametrize("make", CHANGES, ids=lambda make: make.__name__)
async def test_a_change_is_in_the_next_context(
    app: FastAPI, api: httpx.AsyncClient, make: Callable[[httpx.AsyncClient], Awaitable[None]]
) -> None:
    await prepare(app, api)
    before = await context(api)
    await make(api)
    after = await context(api)
    # A context of a line that is named remembers nothing.
    assert after == await context(api, line=after["line"])
    assert [one["text"] for one in after["segments"]] != [one["text"] for one in before["segments"]]


async def test_a_restored_line_has_its_former_knowledge(app: FastAPI, api: httpx.AsyncClient) -> None:
    await prepare(app, api)
    await checkpoint(api, "then")
    await soft_delete(api, "m4")
    await context(api)
    await restore(api, "then")
    after, asked = await ask(app, api)
    assert (after, len(asked)) == (await context(api, line=after["line"]), 2)
    assert any("of_c: a lamp" in one["text"] for one in after["segments"])


async def test_an_append_does_not_repeat_remembered_queries(app: FastAPI, api: httpx.AsyncClient) -> None:
    await prepare(app, api)
    await append(api, talk(6, 7))
    found, (statement,) = await ask(app, api)
    assert "teachings" not in statement
    assert found == await context(api, line=found["line"])


async def test_a_swipe_back_restores_the_former_knowledge(app: FastAPI, api: httpx.AsyncClient) -> None:
    await prepare(app, api)
    before = await context(api)
    await add_swipe(api, "m4", "Something else.")
    assert await context(api) != before
    await select_swipe(api, "m4", 0)
    after = await context(api)
    assert [one["text"] for one in after["segments"]] == [one["text"] for one in before["segments"]]


async def test_a_shared_diary_is_read_beside_it(app: FastAPI, api: httpx.AsyncClient) -> None:
    for chat_id in ("c", "d"):
        await sharing.begin(api, chat_id)
    await set_fact(api, "home", "Lisbon", under="/v1")
    for text in ("The first lamp.", "The second lamp."):
        await sharing.write_in(api, "d", text)
        await ask(app, api)
        found, (statement,) = await ask(app, api)
        shown = " ".join(one["text"] for one in found["segments"])
        assert (text in shown, "home: Lisbon" in shown) == (True, True)
        assert ("diary_entries" in statement, "teachings" in statement) == (True, False)


async def test_a_diary_that_is_shared_later_is_read(app: FastAPI, api: httpx.AsyncClient) -> None:
    await prepare(app, api)
    await sharing.begin(api, "d")
    await sharing.write_in(api, "d", "A lamp of another day.")
    await put(api, status=200, settings={"diary": {"scope": "character"}})
    found, _ = await ask(app, api)
    assert found == await context(api, line=found["line"])
    assert any("A lamp of another day." in one["text"] for one in found["segments"])


async def test_an_edit_of_other_messages_is_asked_once(app: FastAPI, api: httpx.AsyncClient) -> None:
    await prepare(app, api)
    await edit(api, "m5", content="Something new.")
    assert [len((await ask(app, api))[1]) for _ in range(2)] == [2, 1]


async def test_learning_in_each_turn_takes_one_statement(app: FastAPI, api: httpx.AsyncClient) -> None:
    """Only the first changes cost a second statement, until nothing changes between two contexts."""
    await prepare(app, api)
    taken = []
    for value in ("Porto", "Faro", "Braga", "Olhão"):
        await set_fact(api, "home", value, status=200)
        found, statements = await ask(app, api)
        assert any(f"home: {value}" in one["text"] for one in found["segments"])
        taken.append(len(statements))
    assert taken == [2, 2, 1, 1]
    assert ["teachings" in (await ask(app, api))[1][0] for _ in range(2)] == [True, False]
    await set_fact(api, "home", "Sines", status=200)
    assert len((await ask(app, api))[1]) == 2
