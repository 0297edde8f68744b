"""What a character writes into a block holds while the reply that wrote it has the same text."""

import httpx
import pytest

from app.kit.clock import SteppedClock
from tests.blocks.asking import delete_block, edit_block, history, put_block, shown, texts, update
from tests.facts.asking import USER, begin, call, checkpoint, fork, learn_wide, restore, switch_to
from tests.talk import (
    CHAT,
    Act,
    add_swipe,
    append,
    cut_off,
    edit,
    get,
    hide,
    ok,
    put,
    said,
    select_swipe,
    soft_delete,
    talk,
)

TEA = {"user": "Mira likes tea."}


async def test_a_tool_edits_a_block(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    assert "Mira likes tea." in await update(api, "append", "Mira likes tea.")
    clock.step(60)
    assert "Mira likes rum." in await update(api, "search_replace", "rum", "tea")
    block = await get(api, "/blocks/user")
    assert (block["origin"], block["sources"], block["edited"]) == ("tool", ["message:m2"], False)
    assert await shown(api) == {"user": "Mira likes rum."}
    await edit_block(api, "append", "She sails.")
    assert ((await get(api, "/blocks/user"))["origin"], (await get(api, "/blocks/user"))["edited"]) == ("person", True)
    clock.step(60)
    await update(api, "replace", "Mira.")
    assert await shown(api) == {"user": "Mira."}
    (tool,) = [
        one["function"] for one in ok(await api.get("/v1/tools"), 200)["tools"] if "block" in one["function"]["name"]
    ]
    described = tool["parameters"]["properties"]
    assert described["block"]["enum"] == ["persona", "user", "facts", "context"]
    assert described["operation"]["enum"] == ["replace", "append", "search_replace"]
    assert described["search_pattern"]["type"] == "string"
    assert tool["parameters"]["required"] == ["block", "operation", "content"]


async def test_a_rewritten_text_wins_over_an_earlier_tool_edit(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await put_block(api, TEA["user"])
    await append(api, talk(1, 2))
    clock.step(1)
    await update(api, "replace", "Mira likes rum.")
    await add_swipe(api, "m2", "Tea, then.")
    clock.step(1)
    await put_block(api, TEA["user"], status=200)
    await select_swipe(api, "m2", 0)
    assert await texts(api) == TEA


async def test_wrong_arguments_are_explained(api: httpx.AsyncClient) -> None:
    await begin(api)
    for arguments, words in (
        ({}, "block is missing"),
        ({"block": "mood", "operation": "append", "content": "x"}, "block must be 'persona', 'user', 'facts' or"),
        ({"block": "user", "operation": "append", "content": ""}, "content"),
        ({"block": "user", "operation": "replace", "content": "x" * 2_001}, "2,000"),
        ({"block": "user", "operation": "search_replace", "content": "x"}, "search_pattern is required"),
        ({"block": "user", "operation": "append", "content": "x", "search_pattern": "y"}, "search_pattern"),
    ):
        answer = await call(api, "memory_block_update", arguments, status=422)
        assert words in answer
        assert "Call memory_block_update with" in answer
    null = {"block": "user", "operation": "append", "content": "x", "search_pattern": None}
    await call(api, "memory_block_update", null)


async def test_an_edit_that_does_not_apply_is_explained(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    assert "is empty" in await update(api, "search_replace", "rum", "tea")
    await put_block(api, "Mira likes tea.")
    answer = await update(api, "search_replace", "rum", "milk")
    assert "does not contain" in answer
    assert "Mira likes tea." in answer
    answer = await update(api, "append", "x" * 1_999)
    assert "2,015" in answer
    assert await texts(api) == TEA
    calls = ok(await api.get(f"{CHAT}/tools/calls"), 200)["items"]
    assert [one["outcome"] for one in calls] == ["refused"] * 3


async def test_a_tool_sees_its_open_calls(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, [said(1)])
    await update(api, "append", "x" * 1_500)
    assert "nothing has changed" in await update(api, "append", "y" * 1_500)
    assert "nothing has changed" not in await update(api, "search_replace", "Mira likes tea.", "x" * 1_500)
    assert await texts(api) == {}
    await append(api, [said(2)])
    assert await texts(api) == TEA


async def test_after_fifty_edits_a_tool_must_replace_the_text(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    for n in range(50):
        await update(api, "append", f"Line {n}.")
    answer = await update(api, "append", "Line 50.")
    assert "nothing has changed" in answer
    assert "`replace`" in answer
    assert "consists of 50 edits" in answer
    clock.step(1)
    await update(api, "replace", "Lines.")
    await update(api, "append", "Line 51.")
    assert await texts(api) == {"user": "Lines.\nLine 51."}


TAKEN_BACK: dict[str, tuple[Act, Act]] = {
    "swipe": (lambda api: add_swipe(api, "m2", "No."), lambda api: select_swipe(api, "m2", 0)),
    "edit": (
        lambda api: edit(api, "m2", content="No."),
        lambda api: edit(api, "m2", content=said(2)["content"]),
    ),
    "hide": (lambda api: hide(api, (2, 2)), lambda api: hide(api, (2, 2), hidden=False)),
}


@pytest.mark.parametrize("scope", ["chat", "character", "user", "global"])
@pytest.mark.parametrize("way", TAKEN_BACK)
async def test_an_edit_leaves_and_returns_with_its_reply(api: httpx.AsyncClient, scope: str, way: str) -> None:
    take_back, bring_back = TAKEN_BACK[way]
    await learn_wide(api, scope=scope)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await update(api, "append", "Mira likes tea.")
    elsewhere = {} if scope == "chat" else TEA
    assert await texts(api) == TEA
    assert await texts(api, under="/v1/chats/d") == elsewhere
    await take_back(api)
    assert await texts(api) == {}
    assert await shown(api) == {}
    assert await texts(api, under="/v1/chats/d") == {}
    await bring_back(api)
    assert await texts(api) == TEA
    assert await shown(api) == TEA
    assert await texts(api, under="/v1/chats/d") == elsewhere


async def test_undoing_an_edit_keeps_the_later_edits_that_still_apply(
    api: httpx.AsyncClient, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await update(api, "append", "Mira likes tea.")
    await append(api, talk(3, 4))
    clock.step(1)
    await update(api, "append", "She sails.")
    await append(api, talk(5, 6))
    clock.step(1)
    await update(api, "search_replace", "rum", "tea")
    assert await texts(api) == {"user": "Mira likes rum.\nShe sails."}
    await soft_delete(api, "m2")
    assert await texts(api) == {"user": "She sails."}
    assert await shown(api) == {"user": "She sails."}
    assert [(one["text"], one["applied"]) for one in await history(api)] == [
        ("She sails.", False),
        ("She sails.", True),
    ]


async def test_a_replacement_taken_back_reveals_the_former(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await put_block(api, "Mira likes tea.")
    await append(api, talk(1, 2))
    clock.step(1)
    await update(api, "replace", "Mira is dead.")
    clock.step(1)
    await edit_block(api, "append", "So it is said.")
    assert await shown(api) == {"user": "Mira is dead.\nSo it is said."}
    await edit(api, "m2", content="No.")
    assert await shown(api) == {"user": "Mira likes tea.\nSo it is said."}


async def test_a_wide_block_is_seen_elsewhere(api: httpx.AsyncClient) -> None:
    await learn_wide(api)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await update(api, "append", "Mira likes tea.")
    assert await shown(api, chat_id="d") == TEA
    tag = (await api.get("/v1/chats/d/context")).headers["etag"]
    await soft_delete(api, "m2")
    assert await shown(api, chat_id="d") == {}
    changed = await api.get("/v1/chats/d/context", headers={"If-None-Match": tag})
    assert changed.status_code == 200


async def test_a_discarded_call_leaves_nothing(api: httpx.AsyncClient) -> None:
    await learn_wide(api)
    await append(api, [said(1)])
    await update(api, "append", "Mira likes tea.")
    ok(await api.post(f"{CHAT}/tools/discard"), 200)
    await append(api, [said(2)])
    assert await texts(api) == {}
    ok(await api.get(f"{USER}/blocks/user/history"), 404)


@pytest.mark.parametrize("newest", [1, 2])
async def test_a_retried_call_is_one_edit(api: httpx.AsyncClient, newest: int) -> None:
    await begin(api)
    await append(api, talk(1, newest))
    await put_block(api, "Mira likes tea.")
    answers = {await update(api, "search_replace", "rum", "tea") for _ in range(3)}
    answers |= {await update(api, "append", "x" * 1_900) for _ in range(3)}
    assert not any("nothing has changed" in answer for answer in answers)
    await append(api, talk(newest + 1, newest + 1))
    assert len(await history(api)) == 3


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_an_edit_before_a_checkpoint_survives_its_restore(api: httpx.AsyncClient, scope: str) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 2))
    await update(api, "append", "Mira likes tea.")
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    await restore(api, "before")
    assert await texts(api) == TEA
    assert await shown(api) == TEA


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_an_edit_after_a_checkpoint_is_undone_by_its_restore(api: httpx.AsyncClient, scope: str) -> None:
    await learn_wide(api, scope=scope)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await put_block(api, "Mira.")
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    await update(api, "replace", "Mira likes tea.", label="context")
    line = (await get(api, ""))["line"]
    both = {"user": "Mira.", "context": "Mira likes tea."}
    elsewhere = {} if scope == "chat" else {"context": "Mira likes tea."}
    assert await texts(api, under="/v1/chats/d") == elsewhere
    await restore(api, "before")
    assert await texts(api) == {"user": "Mira."}
    assert await texts(api, under="/v1/chats/d") == {}
    assert await texts(api, line=line) == both, "the abandoned line still says so"
    await switch_to(api, line)
    assert await shown(api) == both
    assert await texts(api, under="/v1/chats/d") == elsewhere


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_a_truncation_undoes_the_edits_of_its_messages(
    api: httpx.AsyncClient, scope: str, clock: SteppedClock
) -> None:
    await learn_wide(api, scope=scope)
    await append(api, talk(1, 2))
    await update(api, "append", "Mira likes tea.")
    await append(api, talk(3, 4))
    clock.step(1)
    await update(api, "search_replace", "rum", "tea")
    await cut_off(api, 3)
    assert await texts(api) == TEA
    assert len(await history(api)) == 1


async def test_a_fork_has_only_the_edits_before_it(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await update(api, "append", "Mira likes tea.")
    await append(api, talk(3, 4))
    clock.step(1)
    await update(api, "search_replace", "rum", "tea")
    await fork(api, "before", at_seq=2)
    await fork(api, "after", at_seq=4)
    assert await texts(api, under="/v1/chats/before") == TEA
    assert await texts(api, under="/v1/chats/after") == {"user": "Mira likes rum."}
    assert (await api.delete(CHAT)).status_code == 204
    assert await shown(api, chat_id="before") == TEA
    assert await shown(api, chat_id="after") == {"user": "Mira likes rum."}


async def test_edits_follow_their_messages_in_a_reimport(api: httpx.AsyncClient) -> None:
    await learn_wide(api)
    messages = talk(1, 4)
    await append(api, messages)
    await update(api, "append", "Mira likes tea.")
    moved = [messages[0], said(9, id="new", content="In between."), *messages[1:]]
    assert ok(await api.put(f"{CHAT}/messages", json={"messages": moved}), 200)["line"] is not None
    assert await texts(api) == TEA
    assert (await get(api, "/blocks/user"))["sources"] == ["message:m4"]
    await edit(api, "m4", content="No.")
    assert await texts(api) == {}


async def test_a_context_before_a_reply_omits_the_replys_edit(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await update(api, "append", "Mira likes tea.")
    await append(api, talk(3, 4))
    clock.step(1)
    await update(api, "replace", "Mira is dead.")
    assert await shown(api) == {"user": "Mira is dead."}
    assert await shown(api, before="m4") == TEA
    assert await shown(api, before="m2") == {}


async def test_a_tool_edits_a_nearer_block_where_it_is(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await learn_wide(api)
    await append(api, talk(1, 2))
    await put_block(api, "Mira likes tea.")
    clock.step(1)
    await update(api, "search_replace", "rum", "tea")
    assert await texts(api) == {"user": "Mira likes rum."}
    assert await texts(api, under=USER) == {}


async def test_a_tool_of_a_chat_leaves_the_wider_text(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await put_block(api, "Mira likes tea.", under=USER)
    await append(api, talk(1, 2))
    clock.step(1)
    await update(api, "search_replace", "rum", "tea")
    assert await shown(api) == {"user": "Mira likes rum."}
    assert await texts(api, under=USER) == TEA
    await soft_delete(api, "m2")
    assert await shown(api) == TEA


async def test_without_a_user_a_tool_writes_for_the_chat(api: httpx.AsyncClient) -> None:
    await put(api, settings={"memories": {"learn_scope": "global"}})
    await append(api, talk(1, 2))
    await update(api, "append", "Mira likes tea.")
    assert (await get(api, "/blocks/user"))["scope"] == "chat"
    assert await texts(api, under="/v1") == {}


@pytest.mark.parametrize(("operation", "pattern"), [("append", None), ("search_replace", "tea")])
async def test_a_retry_says_what_the_block_reads_now(
    api: httpx.AsyncClient, operation: str, pattern: str | None
) -> None:
    await begin(api)
    await put_block(api, TEA["user"])
    await append(api, talk(1, 2))
    assert (await update(api, operation, "rum", pattern)).startswith(
        "It is written. The block 'user' reads:\nMira likes"
    )
    again = "This call was made before, so nothing is written again. The block 'user' "
    assert "rum" in await update(api, operation, "rum", pattern)
    await put_block(api, "Mira sails.", status=200)
    assert (await update(api, operation, "rum", pattern)).startswith(f"{again}reads:\nMira sails.\n")
    await put_block(api, "", status=200)
    assert (await update(api, operation, "rum", pattern)).startswith(f"{again}is empty. Go on")
    assert await texts(api) == {"user": ""}


async def test_a_retry_says_that_the_block_was_deleted(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await update(api, "append", "rum")
    await delete_block(api)
    answer = await update(api, "append", "rum")
    assert "The block 'user' was deleted since, so it holds nothing." in answer
    await put_block(api, "Mira rows.", under=USER)
    assert "reads:\nMira rows.\n" in await update(api, "append", "rum")


async def test_a_retry_for_a_hidden_reply_names_no_deletion(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 5))
    await hide(api, (4, 4))
    assert "The block 'user' is empty." in await update(api, "append", "rum", message_id="m4")
    empty = "This call was made before, so nothing is written again. The block 'user' is empty. Go on"
    assert (await update(api, "append", "rum", message_id="m4")).startswith(empty)
    await update(api, "append", "tea", message_id="m2")
    assert "It is written." in await update(api, "search_replace", "rum", "tea", message_id="m4")
    await hide(api, (2, 2))
    assert (await update(api, "search_replace", "rum", "tea", message_id="m4")).startswith(empty)


async def test_a_retry_of_replacing_names_the_deletion(api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await put_block(api, "Mira likes tea.")
    await update(api, "search_replace", "rum", "tea")
    await delete_block(api)
    assert "The block 'user' was deleted since" in await update(api, "search_replace", "rum", "tea")
