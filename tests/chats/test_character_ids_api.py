"""The ids of characters: made once, kept through every PUT that names the character, matched if they are sent."""

from uuid import UUID, uuid4

import httpx
import pytest

from tests.talk import Json, get, ok, put


async def cast(api: httpx.AsyncClient, *characters: Json, status: int = 200) -> list[Json]:
    """Replace the chat's characters; return them, or the errors if they are refused."""
    answer = await put(api, status=status, characters=list(characters))
    found: list[Json] = answer["characters"] if status < 400 else answer["errors"]
    return found


async def test_a_character_gets_an_id_that_a_put_keeps(api: httpx.AsyncClient) -> None:
    (kai,) = await cast(api, {"name": "Kai", "persona": "A lighthouse keeper."}, status=201)
    assert UUID(kai["id"]).version == 7
    assert kai["aliases"] == []
    mira, again = await cast(api, {"name": "Mira"}, {"name": "Kai"})
    assert again["id"] == kai["id"] != mira["id"]
    assert (await get(api, ""))["characters"] == [mira, again]


async def test_the_returned_characters_can_be_sent_back_unchanged(api: httpx.AsyncClient) -> None:
    shown = await cast(api, {"name": "Kai", "persona": "A keeper."}, {"name": "Mira", "disabled": True}, status=201)
    assert await cast(api, *shown) == shown


async def test_an_id_that_is_sent_is_stored_with_a_new_character(api: httpx.AsyncClient) -> None:
    (kai,) = await cast(api, {"name": "Kai"}, status=201)
    given = str(uuid4())
    assert [one["id"] for one in await cast(api, {"name": "Kai"}, {"name": "Mira", "id": given})] == [kai["id"], given]


async def test_a_known_id_with_another_name_is_refused(api: httpx.AsyncClient) -> None:
    kai, mira = await cast(api, {"name": "Kai"}, {"name": "Mira"}, status=201)
    for given in (kai | {"name": "Cay"}, kai | {"name": "Mira"}):
        (error,) = await cast(api, given, status=409)
        assert error["loc"] == ["body", "characters", 0, "name"]
        assert "/rename" in error["msg"]
    assert (await get(api, ""))["characters"] == [kai, mira]


async def test_a_name_with_the_id_of_another_is_refused(api: httpx.AsyncClient) -> None:
    kai, mira = await cast(api, {"name": "Kai"}, {"name": "Mira"}, status=201)
    (error,) = await cast(api, {"name": "Kai", "id": mira["id"]}, {"name": "Ines"}, status=409)
    assert error["loc"] == ["body", "characters", 0, "name"]
    (error,) = await cast(api, mira, {"name": "Kai", "id": str(uuid4())}, status=409)
    assert error["loc"] == ["body", "characters", 1, "id"]
    assert kai["id"] in error["msg"]


@pytest.mark.parametrize("twice", [{"name": "Cay"}, {"name": "Kai"}])
async def test_an_id_can_be_given_only_once(api: httpx.AsyncClient, twice: Json) -> None:
    given = str(uuid4())
    (error,) = await cast(api, {"name": "Kai", "id": given}, twice | {"id": given}, status=422)
    assert error["loc"][:2] == ["body", "characters"]


async def test_a_character_that_is_removed_gets_a_new_id(api: httpx.AsyncClient) -> None:
    (kai,) = await cast(api, {"name": "Kai"}, status=201)
    assert await cast(api) == []
    (again,) = await cast(api, {"name": "Kai"})
    assert again["id"] != kai["id"]


async def test_a_restore_and_a_fork_keep_the_ids(api: httpx.AsyncClient) -> None:
    former = await cast(api, {"name": "Kai"}, status=201)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "before"}), 201)
    await cast(api, {"name": "Mira"})
    ok(await api.post("/v1/chats/c/checkpoints/before/restore"), 201)
    assert (await get(api, ""))["characters"] == former
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d"}), 201)
    assert ok(await api.get("/v1/chats/d"), 200)["characters"] == former
