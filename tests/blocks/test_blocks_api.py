"""Core blocks that people write, in each scope: which text holds, and what it was before."""

import asyncio
from uuid import uuid4

import httpx
import pytest

from app.blocks.fold import LABELS
from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.blocks.asking import edit_block, history, put_block, shown, texts
from tests.conftest import NOON, client_of
from tests.facts.asking import KAI, USER, begin, checkpoint, fork, restore
from tests.talk import CHAT, append, context, get, ok, put, talk, token_of

KAI_OF_MIRA = f"{USER}/characters/Kai"
SCOPES = ["/v1", USER, KAI_OF_MIRA, CHAT]


async def test_a_block_is_written_read_and_replaced(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    first = await put_block(api, "Mira, a cartographer.")
    clock.step(60)
    second = await put_block(api, "Mira, a sailor.", status=200)
    assert first["id"] != second["id"]
    assert await get(api, "/blocks/user") == second
    names = ("label", "text", "scope", "character", "origin", "edited", "sources")
    assert {name: second[name] for name in names} == {
        "label": "user",
        "text": "Mira, a sailor.",
        "scope": "chat",
        "character": None,
        "origin": "person",
        "edited": False,
        "sources": [],
    }
    found = [(one["text"], one["operation"], one["created_at"], one["held_until"]) for one in await history(api)]
    assert found == [
        ("Mira, a sailor.", "replace", second["created_at"], None),
        ("Mira, a cartographer.", "replace", first["created_at"], second["created_at"]),
    ]


async def test_the_same_text_again_changes_nothing(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    first = await put_block(api, "Mira.")
    clock.step(60)
    assert await put_block(api, "Mira.", status=200) == first


@pytest.mark.parametrize("under", SCOPES)
async def test_append_replace_and_search_replace_edit_a_block(api: httpx.AsyncClient, under: str) -> None:
    await begin(api)
    assert (await edit_block(api, "append", "Mira likes tea.", under=under))["text"] == "Mira likes tea."
    assert (await edit_block(api, "append", "Mira has a boat.", under=under))["text"] == (
        "Mira likes tea.\nMira has a boat."
    )
    edited = await edit_block(api, "search_replace", "She", "Mira", under=under)
    assert edited["text"] == "She likes tea.\nShe has a boat."
    assert await texts(api, under=under) == {"user": "She likes tea.\nShe has a boat."}
    assert await shown(api) == {"user": "She likes tea.\nShe has a boat."}
    assert (await edit_block(api, "replace", "Gone.", under=under))["text"] == "Gone."
    steps = [(one["operation"], one["content"], one["search_pattern"], one["text"]) for one in await history(api)]
    assert steps == [
        ("replace", "Gone.", None, "Gone."),
        ("search_replace", "She", "Mira", "She likes tea.\nShe has a boat."),
        ("append", "Mira has a boat.", None, "Mira likes tea.\nMira has a boat."),
        ("append", "Mira likes tea.", None, "Mira likes tea."),
    ]


@pytest.mark.parametrize("under", SCOPES)
async def test_an_edit_that_does_not_apply_is_a_409(api: httpx.AsyncClient, under: str) -> None:
    await begin(api)
    problem = await edit_block(api, "search_replace", "x", "y", under=under, status=409)
    assert problem["code"] == "pattern_not_found"
    await put_block(api, "x" * 1_990, under=under)
    problem = await edit_block(api, "append", "y" * 10, under=under, status=409)
    assert problem["code"] == "block_too_long"
    assert "2,001" in problem["detail"]
    problem = await edit_block(api, "search_replace", "yy", "x", under=under, status=409)
    assert "3,980" in problem["detail"]
    assert await texts(api, under=under) == {"user": "x" * 1_990}
    assert len((await edit_block(api, "append", "y" * 9, under=under))["text"]) == 2_000


async def test_wrong_bodies_are_refused(api: httpx.AsyncClient) -> None:
    await begin(api)
    problem = ok(await api.put(f"{CHAT}/blocks/user", json={"text": "x" * 2_001}), 422)
    assert problem["errors"][0]["loc"] == ["body", "text"]
    for body, name in (
        ({"operation": "search_replace", "content": "x"}, "search_pattern"),
        ({"operation": "append", "content": "x", "search_pattern": "y"}, "search_pattern"),
        ({"operation": "append", "content": ""}, "content"),
        ({"operation": "delete", "content": "x"}, "operation"),
        ({"operation": "replace", "content": "x" * 2_001}, "content"),
    ):
        problem = ok(await api.post(f"{CHAT}/blocks/user/edit", json=body), 422)
        assert problem["errors"][0]["loc"] == ["body", name]
    assert await texts(api) == {}


@pytest.mark.parametrize("under", SCOPES)
async def test_unwritten_and_unknown_blocks_are_404(api: httpx.AsyncClient, under: str) -> None:
    await begin(api)
    for path in ("user", "user/history", "mood", "mood/history"):
        assert ok(await api.get(f"{under}/blocks/{path}"), 404)["code"] == "block_not_found"
    assert (await put_block(api, "x", label="mood", under=under, status=404))["code"] == "block_not_found"
    await edit_block(api, "append", "x", label="mood", under=under, status=404)


async def test_blocks_are_in_the_order_of_their_labels(api: httpx.AsyncClient) -> None:
    await begin(api)
    labels = ["persona", "user", "facts", "context"]
    for label in reversed(labels):
        await put_block(api, f"About {label}.", label=label)
    assert list(await texts(api, limit=1)) == labels
    assert list(await shown(api)) == labels


async def test_the_nearest_scope_wins(api: httpx.AsyncClient) -> None:
    await begin(api)
    for under in SCOPES:
        await put_block(api, under, under=under)
        assert await texts(api) == {"user": under}
        assert await shown(api) == {"user": under}
    for under in SCOPES:
        assert await texts(api, under=under) == {"user": under}


async def test_a_near_edit_builds_on_the_wider_text(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await put_block(api, "Mira likes tea.", under=USER)
    await edit_block(api, "append", "Here she is a spy.")
    edited = await edit_block(api, "search_replace", "rum", "tea")
    assert (edited["text"], edited["scope"]) == ("Mira likes rum.\nHere she is a spy.", "chat")
    assert await texts(api, under="/v1/chats/d") == {"user": "Mira likes tea."}
    assert await shown(api, chat_id="d") == {"user": "Mira likes tea."}
    await put_block(api, "Mira likes milk.", under=USER, status=200)
    assert await shown(api) == {"user": "Mira likes milk.\nHere she is a spy."}
    assert [(one["content"], one["applied"]) for one in await history(api) if one["scope"] == "chat"] == [
        ("rum", False),
        ("Here she is a spy.", True),
    ]


async def test_a_wider_text_that_grows_gives_way(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put_block(api, "Mira sails.", under=USER)
    await edit_block(api, "append", "x" * 1_900)
    grown = f"Mira sails.\n{'y' * 90}\nShe is here."
    await put_block(api, grown, under=USER, status=200)
    block = await get(api, "/blocks/user")
    assert block["text"] == f"She is here.\n{'x' * 1_900}"
    assert block["left_out"] == f"Mira sails.\n{'y' * 90}"
    assert await shown(api) == await texts(api) == {"user": block["text"]}
    assert [(one["name"], one["why"]) for one in (await context(api))["omitted"]] == [
        ("block user: lines of wider scopes", "budget")
    ]
    assert all(one["applied"] for one in await history(api))
    assert await texts(api, under=USER) == {"user": grown}
    await edit_block(api, "append", "z" * 100, status=409)
    await put_block(api, "Mira.", under=USER, status=200)
    assert (await get(api, "/blocks/user"))["left_out"] == ""
    assert (await context(api))["omitted"] == []


async def test_an_empty_text_hides_the_wider_one(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put_block(api, "Mira likes tea.", under=USER)
    await put_block(api, "")
    assert await texts(api) == {"user": ""}
    assert await shown(api) == {}
    assert await texts(api, under=USER) == {"user": "Mira likes tea."}
    assert (await edit_block(api, "append", "A spy."))["text"] == "A spy."


async def test_a_former_text_is_written_again(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put_block(api, "First.")
    await put_block(api, "Second.", status=200)
    former = (await history(api))[1]["text"]
    assert (await put_block(api, former, status=200))["text"] == "First."
    assert [one["text"] for one in await history(api, limit=2)] == ["First.", "Second.", "First."]


async def test_many_edits_are_stored_as_one_text(api: httpx.AsyncClient) -> None:
    await begin(api)
    for n in range(53):
        await edit_block(api, "append", f"Line {n}.")
    operations = [one["operation"] for one in await history(api)]
    assert operations == ["append", "append", "replace"] + ["append"] * 50
    assert (await texts(api))["user"].splitlines() == [f"Line {n}." for n in range(53)]


async def test_a_later_edit_applies_if_the_clock_steps_back(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    for under in (CHAT, USER):
        await put_block(api, "Mira.", under=under)
        clock.step(-60)
        edited = await edit_block(api, "append", "A sailor.", under=under)
        assert edited["text"] == "Mira.\nA sailor."


async def test_racing_edits_do_not_exceed_the_limit(api: httpx.AsyncClient) -> None:
    await begin(api)
    for under in (USER, CHAT):
        await put_block(api, "x" * 900, under=under)
        answers = await asyncio.gather(
            *(
                api.post(f"{under}/blocks/user/edit", json={"operation": "append", "content": "y" * 600})
                for _ in range(4)
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
        assert all(one["applied"] for one in await history(api, under=under))


async def test_users_and_tenants_do_not_share_blocks(api: httpx.AsyncClient, app: object, database: Database) -> None:
    await begin(api)
    await put(api, "other", user_id="tomas", characters=[KAI])
    for under in (USER, KAI_OF_MIRA):
        await put_block(api, "hers", under=under)
    assert await texts(api, under="/v1/chats/other") == {}
    await put_block(api, "theirs", under="/v1", label="context")
    assert await shown(api, chat_id="other") == {"context": "theirs"}
    async with database.unit_of_work() as db_session:
        key = (await create_key(db_session, f"t-{uuid4().hex}", ["read", "write"], NOON)).text
    async with client_of(app, key) as stranger:  # type: ignore[arg-type]
        await begin(stranger)
        assert await texts(stranger) == {}
        assert await texts(stranger, under=USER) == {}


async def test_characters_of_a_user_do_not_share_blocks(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira", characters=[KAI, {"name": "Ines"}])
    await put_block(api, "A keeper.", label="persona", under=KAI_OF_MIRA)
    assert await texts(api, character="Kai") == {"persona": "A keeper."}
    assert await texts(api, character="Ines") == {}
    assert await texts(api) == {}, "of several characters, none is meant"
    assert await shown(api, character="Kai") == {"persona": "A keeper."}
    edited = await edit_block(api, "search_replace", "spy", "keeper", label="persona", character="Kai")
    assert edited["text"] == "A spy."
    await edit_block(api, "search_replace", "spy", "keeper", label="persona", character="Ines", status=409)
    await get(api, "/blocks", 422, character="Nobody")


async def test_a_renamed_character_keeps_its_blocks(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put_block(api, "A keeper.", label="persona", under=KAI_OF_MIRA)
    ok(await api.post(f"{CHAT}/characters/Kai/rename", json={"name": "Kaito"}), 200)
    await edit_block(api, "append", "Old.", label="persona", under=f"{USER}/characters/Kaito")
    assert await texts(api) == {"persona": "A keeper.\nOld."}
    assert await shown(api) == {"persona": "A keeper.\nOld."}


async def test_a_fork_and_a_restore_keep_what_people_wrote(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await checkpoint(api, "before")
    await put_block(api, "Mira likes tea.")
    await edit_block(api, "search_replace", "rum", "tea")
    await fork(api, "f", at_seq=2)
    await restore(api, "before")
    assert await texts(api) == {"user": "Mira likes rum."}
    assert (await api.delete(CHAT)).status_code == 204
    assert await texts(api, under="/v1/chats/f") == {"user": "Mira likes rum."}


async def test_an_erased_user_has_no_blocks(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put_block(api, "Mira.", under=USER)
    assert (await api.delete(USER)).status_code == 204
    assert await texts(api, under=USER) == {}


async def test_a_budget_leaves_out_the_last_labels(api: httpx.AsyncClient) -> None:
    await begin(api, blocks={"budget": {"type": "absolute", "value": 30}})
    for label in ("persona", "user", "facts"):
        await put_block(api, f"The {label} is a keeper of the lamp.", label=label)
    assert list(await shown(api)) == ["persona", "user"]
    assert [one["name"] for one in (await context(api))["omitted"]] == ["block facts"]


async def test_blocks_have_no_budget_by_default(api: httpx.AsyncClient) -> None:
    await begin(api)
    for label in LABELS:
        await put_block(api, "灯塔守护者" * 400, label=label)
    whole = await context(api)
    (segment,) = [one for one in whole["segments"] if one["name"] == "blocks"]
    assert segment["tokens"] > whole["max_tokens"] // 10
    assert (list(await shown(api)), whole["omitted"]) == (list(LABELS), [])


async def test_the_last_labels_are_trimmed_first(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    for label in ("persona", "user", "facts", "context"):
        await put_block(api, f"The {label} is a keeper of the lamp.", label=label)
    whole = await context(api)
    assert list(await shown(api, max_tokens=whole["tokens"] - 1)) == ["persona", "user", "facts"]


async def test_a_context_names_the_source_of_a_block(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put_block(api, "Mira.\n\nShe likes tea.")
    (segment,) = [one for one in (await context(api))["segments"] if one["name"] == "blocks"]
    assert segment["text"] == "## Core memory\n\n### user\n\nMira.\n\nShe likes tea."
    assert segment["sources"] == ["block:user"]
    assert segment["cacheable"]


async def test_a_wide_block_changes_the_tag_of_a_context(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    for under in SCOPES:
        tag = (await api.get(f"{CHAT}/context")).headers["etag"]
        same = await api.get(f"{CHAT}/context", headers={"If-None-Match": tag})
        assert same.status_code == 304
        await put_block(api, under, under=under)
        changed = await api.get(f"{CHAT}/context", headers={"If-None-Match": tag})
        assert changed.status_code == 200


async def test_the_state_has_the_text_of_each_scope(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put_block(api, "Mira.", under=USER)
    await edit_block(api, "append", "A spy.")
    state = (await get(api, "/state"))["layers"]["blocks"]
    assert [(one["scope"], one["label"], one["text"]) for one in state] == [
        ("chat", "user", "Mira.\nA spy."),
        ("user", "user", "Mira."),
    ]


async def test_tokens_reach_only_their_own_scopes(api: httpx.AsyncClient, app: object) -> None:
    await begin(api)
    await put_block(api, "Mira.", under=USER)
    of_user, of_chat = await token_of(api, user_id="mira"), await token_of(api, chat_id="c")
    edit = {"operation": "append", "content": "x"}
    async with client_of(app, of_user) as mira, client_of(app, of_chat) as browser:  # type: ignore[arg-type]
        assert await texts(mira, under=USER) == {"user": "Mira."}
        for client, under, status in (
            (mira, "/v1/users/tomas", 404),
            (mira, "/v1/users/tomas/characters/Kai", 404),
            (mira, "/v1", 403),
            (browser, USER, 404),
            (browser, KAI_OF_MIRA, 404),
            (browser, "/v1", 403),
        ):
            for path in ("blocks", "blocks/user", "blocks/user/history"):
                assert (await client.get(f"{under}/{path}")).status_code == status
            assert (await client.put(f"{under}/blocks/user", json={"text": "red"})).status_code == status
            assert (await client.post(f"{under}/blocks/user/edit", json=edit)).status_code == status
    assert await texts(api, under=USER) == {"user": "Mira."}


@pytest.mark.parametrize("under", [USER, f"{USER}/characters/Kai", "/v1/users/a/b", "/v1"])
async def test_a_block_named_facts_is_read_as_a_block(api: httpx.AsyncClient, under: str) -> None:
    written = await put_block(api, "Tomas is a ferryman.", label="facts", under=under)
    assert ok(await api.get(f"{under}/blocks/facts"), 200) == written
    assert len(await history(api, "facts", under=under)) == 1
