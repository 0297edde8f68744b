"""A shared diary of which one chat renames the character: no chat loses or doubles an entry."""

import httpx

from tests.diary.sharing import begin, cut, entries_of, save_in, shared, shown_in
from tests.talk import append, ok, said

OF_C, OF_D = "The lamp was green tonight.", "The boat has a name."


async def rename_in(api: httpx.AsyncClient, chat_id: str, former: str, name: str) -> None:
    ok(await api.post(f"/v1/chats/{chat_id}/characters/{former}/rename", json={"name": name}), 200)


async def listed(api: httpx.AsyncClient, chat_id: str) -> list[str]:
    """All entries that a chat lists: its own, and with `*` those of other chats."""
    own = [one["content"] for one in await entries_of(api, chat_id)]
    return sorted(own + [f"*{one['content']}" for one in await shared(api, chat_id)])


async def see(api: httpx.AsyncClient, in_c: set[str], in_d: set[str]) -> None:
    """Check that both chats list and show the entries of both, each once, however often their histories are cut."""
    of_c = sorted([*in_c, *(f"*{one}" for one in in_d)])
    of_d = sorted([*in_d, *(f"*{one}" for one in in_c)])
    assert (await listed(api, "c"), await listed(api, "d")) == (of_c, of_d)
    for chat_id, expected in (("c", of_c), ("d", of_d)):
        assert sorted(await shown_in(api, chat_id)) == expected
        await cut(api, chat_id)
        assert sorted(await shown_in(api, chat_id)) == expected


async def test_a_rename_in_one_chat_hides_no_entry(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", OF_C)
    await save_in(api, "d", OF_D)
    in_c, in_d = {OF_C}, {OF_D}
    await see(api, in_c, in_d)
    steps = [("c", "Kai", "Cay"), ("d", "Kai", "Cay"), ("c", "Cay", "Kai"), ("d", "Cay", "Kai"), ("d", "Kai", "Kaito")]
    for step, (chat_id, former, name) in enumerate(steps):
        await rename_in(api, chat_id, former, name)
        await see(api, in_c, in_d)
        for other, known in (("c", in_c), ("d", in_d)):
            known.add(f"Step {step} in {other}.")
            await save_in(api, other, f"Step {step} in {other}.")
        await see(api, in_c, in_d)


async def test_a_new_chat_with_either_name_shares(api: httpx.AsyncClient) -> None:
    await begin(api)
    await save_in(api, "c", OF_C)
    await begin(api, "d")
    await save_in(api, "d", OF_D)
    await rename_in(api, "c", "Kai", "Cay")
    for chat_id, name in (("e", "Kai"), ("f", "Cay")):
        await begin(api, chat_id, name=name)
        assert await listed(api, chat_id) == sorted([f"*{OF_C}", f"*{OF_D}"])


async def test_a_name_of_another_character_is_not_shared(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    cast = [{"name": "Kai"}, {"name": "Cay"}]
    ok(await api.put("/v1/chats/d", json={"characters": cast}), 200)
    await save_in(api, "c", OF_C)
    await rename_in(api, "c", "Kai", "Cay")
    assert await shared(api, "d", character="Kai") == []
    assert [one["content"] for one in await shared(api, "d", character="Cay")] == [OF_C]
    await append(api, [said(3), said(4, name="Cay")], "d")
    await save_in(api, "d", OF_D, character="Cay")
    assert await listed(api, "c") == sorted([OF_C, f"*{OF_D}"])


async def test_a_freed_name_shares_nothing(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await save_in(api, "c", OF_C)
    await rename_in(api, "c", "Kai", "Cay")
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]
    character = {"name": "Cay", "aliases": []}
    ok(await api.put("/v1/chats/c", json={"characters": [character]}), 200)
    answer = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
    assert (answer.status_code, await shared(api, "d")) == (200, [])


async def test_a_rename_in_a_third_chat_joins_two_names(api: httpx.AsyncClient) -> None:
    for chat_id, name in (("c", "Kai"), ("d", "Cay"), ("bridge", "Kai")):
        await begin(api, chat_id, name=name)
    await save_in(api, "c", OF_C)
    await save_in(api, "d", OF_D)
    assert await listed(api, "d") == [OF_D]
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]
    await rename_in(api, "bridge", "Kai", "Cay")
    answer = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
    assert (answer.status_code, await listed(api, "d")) == (200, sorted([OF_D, f"*{OF_C}"]))
    tag = answer.headers["etag"]
    ok(await api.put("/v1/chats/bridge", json={"characters": [{"name": "Cay", "aliases": []}]}), 200)
    answer = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
    assert (answer.status_code, await listed(api, "d")) == (200, [OF_D])
