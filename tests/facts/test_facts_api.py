"""Facts that people set, in each scope: which value holds, and which ones held before."""

from uuid import uuid4

import httpx
import pytest

from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.conftest import NOON, client_of
from tests.facts.asking import USER, begin, delete_fact, fork, held, history, learn_wide, note, set_fact, shown
from tests.talk import CHAT, append, context, get, ok, put, talk, token_of

KAI_OF_MIRA = f"{USER}/characters/Kai"


async def test_a_fact_is_set_read_and_replaced(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    first = await set_fact(api, "lamp", "green")
    clock.step(60)
    second = await set_fact(api, "lamp", "red", status=200)
    assert first["id"] != second["id"]
    assert await get(api, "/facts/lamp") == second
    assert {name: value for name, value in second.items() if name not in ("id", "created_at")} == {
        "key": "lamp",
        "value": "red",
        "scope": "chat",
        "character": None,
        "origin": "person",
        "edited": False,
        "category": None,
        "importance": None,
        "tags": [],
        "sources": [],
    }
    values = [(one["value"], one["created_at"], one["held_until"]) for one in await history(api, "lamp")]
    assert values == [("red", second["created_at"], None), ("green", first["created_at"], second["created_at"])]


async def test_a_history_goes_on_where_its_page_ended(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    for value, status in (("green", 201), ("red", 200), ("blue", 200)):
        clock.step(60)
        await set_fact(api, "lamp", value, status=status)
    page = await get(api, "/facts/lamp/history", limit=2)
    await set_fact(api, "lamp", "white", status=200)
    rest = await get(api, "/facts/lamp/history", limit=2, cursor=page["next_cursor"])
    assert [one["value"] for one in page["items"] + rest["items"]] == ["blue", "red", "green"]
    assert rest["next_cursor"] is None
    await get(api, "/facts/lamp/history", 422, cursor="WzFd")


async def test_the_same_value_again_changes_nothing(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    first = await set_fact(api, "lamp", "green")
    clock.step(60)
    assert await set_fact(api, "lamp", "green", status=200) == first


async def test_the_nearest_scope_wins(api: httpx.AsyncClient) -> None:
    await begin(api)
    places = ["/v1", USER, KAI_OF_MIRA, CHAT]
    for place in places:
        await set_fact(api, "lamp", place, under=place)
        assert await held(api) == {"lamp": place}
        assert await shown(api) == [f"lamp: {place}"]
    for place in places:
        assert await held(api, under=place) == {"lamp": place}


async def test_a_deleted_fact_hides_the_wider_one(api: httpx.AsyncClient) -> None:
    await begin(api)
    await set_fact(api, "lamp", "green", under=USER)
    await delete_fact(api, "lamp")
    assert await held(api) == {}
    assert await shown(api) == []
    await get(api, "/facts/lamp", 404)
    assert await held(api, under=USER) == {"lamp": "green"}
    assert [one["value"] for one in await history(api, "lamp")] == [None, "green"]
    await delete_fact(api, "lamp", status=404)
    await set_fact(api, "lamp", "blue")
    assert await held(api) == {"lamp": "blue"}


@pytest.mark.parametrize("under", [CHAT, USER, KAI_OF_MIRA, "/v1"])
async def test_unknown_facts_are_404(api: httpx.AsyncClient, under: str) -> None:
    await begin(api)
    for path in ("lamp", "lamp/history"):
        problem = ok(await api.get(f"{under}/facts/{path}"), 404)
        assert problem["code"] == "fact_not_found"
    await delete_fact(api, "lamp", under=under, status=404)


async def test_users_and_tenants_do_not_share_facts(api: httpx.AsyncClient, app: object, database: Database) -> None:
    await begin(api)
    await put(api, "other", user_id="tomas", characters=[{"name": "Kai"}])
    for under in (USER, KAI_OF_MIRA):
        await set_fact(api, "lamp", "hers", under=under)
    assert await held(api, under="/v1/chats/other") == {}
    assert await shown(api, chat_id="other") == []
    await set_fact(api, "all", "theirs", under="/v1")
    assert await held(api, under="/v1/chats/other") == {"all": "theirs"}
    async with database.unit_of_work() as db_session:
        key = (await create_key(db_session, f"t-{uuid4().hex}", ["read", "write"], NOON)).text
    async with client_of(app, key) as stranger:  # type: ignore[arg-type]
        await begin(stranger)
        assert await held(stranger) == {}
        assert await held(stranger, under=USER) == {}


async def test_characters_of_a_user_do_not_share_facts(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira", characters=[{"name": "Kai"}, {"name": "Ines"}])
    await set_fact(api, "secret", "the key", under=KAI_OF_MIRA)
    assert await held(api, character="Kai") == {"secret": "the key"}
    assert await held(api, character="Ines") == {}
    assert await held(api) == {}, "of several characters, none is meant"
    assert await shown(api, character="Kai") == ["secret: the key"]
    assert await shown(api, character="Ines") == []
    await get(api, "/facts", 422, character="Nobody")


async def test_histories_of_characters_are_kept_apart(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira", characters=[{"name": "Kai"}, {"name": "Rin"}])
    for name in ("Kai", "Rin"):
        await set_fact(api, "lamp", f"that of {name}", under=f"{USER}/characters/{name}")
    await set_fact(api, "lamp", "that of all", under=USER)
    assert [one["value"] for one in await history(api, "lamp", character="Kai")] == ["that of all", "that of Kai"]
    assert [one["value"] for one in await history(api, "lamp")] == ["that of all"]


async def test_a_later_write_holds_if_the_clock_steps_back(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    for under in (CHAT, USER):
        await set_fact(api, "lamp", "green", under=under)
        clock.step(-60)
        answer = await set_fact(api, "lamp", "red", under=under, status=200)
        assert answer["value"] == "red"
        assert await held(api, under=under) == {"lamp": "red"}
        assert (await history(api, "lamp", under=under))[0]["value"] == "red"


async def test_the_state_has_one_value_of_a_renamed_character(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await set_fact(api, "lamp", "green", under=KAI_OF_MIRA)
    ok(await api.post(f"{CHAT}/characters/Kai/rename", json={"name": "Kay"}), 200)
    clock.step(60)
    await set_fact(api, "lamp", "red", under=f"{USER}/characters/Kay")
    state = (await get(api, "/state"))["layers"]["facts"]
    assert [(one["character"], one["value"]) for one in state] == [("Kay", "red")]


async def test_a_renamed_character_keeps_its_facts(api: httpx.AsyncClient) -> None:
    await begin(api)
    await set_fact(api, "secret", "the key", under=KAI_OF_MIRA)
    ok(await api.post(f"{CHAT}/characters/Kai/rename", json={"name": "Kaito"}), 200)
    assert await held(api) == {"secret": "the key"}
    await set_fact(api, "secret", "the door", under=f"{USER}/characters/Kaito")
    assert await shown(api) == ["secret: the door"]


async def test_a_rename_in_one_chat_is_repeated_in_the_others(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    for chat_id in ("c", "d"):
        await learn_wide(api, chat_id, "character")
        await append(api, talk(1, 2), chat_id)
    await note(api, "lamp", "green")
    ok(await api.post(f"{CHAT}/characters/Kai/rename", json={"name": "Kay"}), 200)
    clock.step(60)
    await note(api, "lamp", "red")
    assert (await held(api), await held(api, under="/v1/chats/d")) == ({"lamp": "red"}, {"lamp": "green"})
    ok(await api.post("/v1/chats/d/characters/Kai/rename", json={"name": "Kay"}), 200)
    assert await held(api, under="/v1/chats/d") == {"lamp": "red"}


async def test_a_chat_without_a_user_has_no_user_scope(api: httpx.AsyncClient) -> None:
    await put(api)
    await set_fact(api, "lamp", "green", under=USER)
    assert await held(api) == {}


async def test_a_fork_has_its_own_copy(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await set_fact(api, "lamp", "green")
    await fork(api, "f", at_seq=2)
    await set_fact(api, "lamp", "red", status=200)
    assert await held(api, under="/v1/chats/f") == {"lamp": "green"}
    assert (await api.delete(CHAT)).status_code == 204
    assert await held(api, under="/v1/chats/f") == {"lamp": "green"}


async def test_a_chat_with_the_id_of_a_user_is_another(api: httpx.AsyncClient) -> None:
    await put(api, "mira", user_id="tomas")
    await set_fact(api, "lamp", "the chat's", under="/v1/chats/mira")
    await set_fact(api, "lamp", "the user's", under=USER)
    assert await held(api, under="/v1/chats/mira") == {"lamp": "the chat's"}
    assert (await api.delete("/v1/chats/mira")).status_code == 204
    assert await held(api, under=USER) == {"lamp": "the user's"}
    await put(api, "mira", user_id="tomas")
    assert await held(api, under="/v1/chats/mira") == {}
    assert (await api.delete("/v1/users/mira")).status_code == 204
    assert await held(api, under=USER) == {}


async def test_pages_and_long_keys(api: httpx.AsyncClient) -> None:
    await begin(api)
    keys = [f"key {n:02}" for n in range(7)] + ["Straße", "猫の名前"]
    for key in reversed(keys):
        await set_fact(api, key, f"value of {key}")
    assert list(await held(api, limit=2)) == sorted(keys)
    for n in range(4):
        await set_fact(api, "Straße", f"value {n}", status=200)
    values = [one["value"] for one in await history(api, "Straße", limit=2)]
    assert values == ["value 3", "value 2", "value 1", "value 0", "value of Straße"]


@pytest.mark.parametrize("name", ["a%2Fb", "%20lamp", "lamp%20", "%0A", "x" * 101, "%20"])
async def test_keys_that_cannot_be_used_are_refused(api: httpx.AsyncClient, name: str) -> None:
    await begin(api)
    answer = await api.put(f"{CHAT}/facts/{name}", json={"value": "green"})
    assert answer.status_code in (404, 422), answer.text
    assert await held(api) == {}


async def test_a_budget_keeps_the_newest_facts(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api, facts={"budget": {"type": "absolute", "value": 20}})
    for n in range(10):
        clock.step(1)
        await set_fact(api, f"lamp{n}", "It is green and stands in the tower.")
    lines = await shown(api)
    assert 1 <= len(lines) < 10
    assert [line[:5] for line in lines] == [f"lamp{n}" for n in range(10 - len(lines), 10)]
    left_out = [one["name"] for one in (await context(api))["omitted"]]
    assert left_out == [f"fact lamp{n}" for n in range(10 - len(lines))]


async def test_the_oldest_facts_are_trimmed_first(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    for n in range(30):
        clock.step(1)
        await set_fact(api, f"lamp{n}", "It is green and stands in the tower.")
    whole = await context(api)
    lines = await shown(api, max_tokens=whole["tokens"] - 30)
    assert 0 < len(lines) < 30
    assert lines[-1].startswith("lamp29")


async def test_a_context_names_the_source_of_a_fact(api: httpx.AsyncClient) -> None:
    await begin(api)
    fact = await set_fact(api, "lamp", "green\n\nand   cold")
    (segment,) = [one for one in (await context(api))["segments"] if one["name"] == "facts"]
    assert segment["text"] == "## Facts\n\n- lamp: green and cold"
    assert segment["sources"] == [f"fact:{fact['id']}"]


async def test_a_wide_fact_changes_the_tag_of_a_context(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    for under in (USER, KAI_OF_MIRA, "/v1", CHAT):
        tag = (await api.get(f"{CHAT}/context")).headers["etag"]
        same = await api.get(f"{CHAT}/context", headers={"If-None-Match": tag})
        assert same.status_code == 304
        await set_fact(api, f"lamp {len(under)}", "green", under=under)
        changed = await api.get(f"{CHAT}/context", headers={"If-None-Match": tag})
        assert changed.status_code == 200


async def test_tokens_reach_only_their_own_scopes(api: httpx.AsyncClient, app: object) -> None:
    await begin(api)
    await set_fact(api, "lamp", "green", under=USER)
    of_user, of_chat = await token_of(api, user_id="mira"), await token_of(api, chat_id="c")
    async with client_of(app, of_user) as mira, client_of(app, of_chat) as browser:  # type: ignore[arg-type]
        assert await held(mira, under=USER) == {"lamp": "green"}
        for client, under, status in (
            (mira, "/v1/users/tomas", 404),
            (mira, "/v1/users/tomas/characters/Kai", 404),
            (mira, "/v1", 403),
            (browser, USER, 404),
            (browser, KAI_OF_MIRA, 404),
            (browser, "/v1", 403),
        ):
            assert (await client.get(f"{under}/facts")).status_code == status
            assert (await client.put(f"{under}/facts/lamp", json={"value": "red"})).status_code == status
            assert (await client.delete(f"{under}/facts/lamp")).status_code == status
    assert await held(api, under=USER) == {"lamp": "green"}
