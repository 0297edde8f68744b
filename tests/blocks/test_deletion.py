"""A person takes back what was written into a block: it has the text of wider scopes and memories again."""

import httpx
import pytest

from app.kit.clock import SteppedClock
from tests.blocks.asking import delete_block, edit_block, history, put_block, shown, texts, update
from tests.facts.asking import USER, checkpoint, fork, restore
from tests.memories.asking import write
from tests.talk import CHAT, append, cut_off, get, ok, put, talk

pytestmark = pytest.mark.usefixtures("replied")

FERRY = "Mira's brother Tomas is a ferryman."
SCOPES = ["/v1", USER, f"{USER}/characters/Kai", CHAT]


async def test_the_block_facts_begins_with_memories_again(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await write(api, FERRY, importance=0.8)
    await put_block(api, "Nothing is certain.", label="facts")
    await write(api, "The lamp is broken.", importance=0.9)
    assert await shown(api) == {"facts": "Nothing is certain."}
    clock.step(1)
    await delete_block(api, "facts")
    assert await shown(api) == await texts(api) == {"facts": f"- {FERRY}\n- The lamp is broken."}
    clock.step(1)
    await write(api, "The harbour freezes.", importance=0.7)
    await edit_block(api, "append", "It is winter.", label="facts")
    assert (await shown(api))["facts"] == f"- {FERRY}\n- The lamp is broken.\n- The harbour freezes.\nIt is winter."


@pytest.mark.parametrize("under", SCOPES)
async def test_deleting_a_block_affects_only_its_scope(api: httpx.AsyncClient, under: str) -> None:
    for number, scope in enumerate(SCOPES):
        await put_block(api, f"Text {number}.", under=scope)
    await delete_block(api, under=under)
    expected = "Text 2." if under == CHAT else "Text 3."
    assert await texts(api) == await shown(api) == {"user": expected}
    await delete_block(api, under=under, status=404)
    ok(await api.get(f"{under}/blocks/user"), 200 if under == CHAT else 404)
    for scope in SCOPES:
        if scope != under:
            await delete_block(api, under=scope)
    assert await texts(api) == await shown(api) == {}
    ok(await api.get(f"{CHAT}/blocks/user"), 404)
    assert ok(await api.get(f"{CHAT}/state"), 200)["layers"]["blocks"] == []


async def test_edits_build_on_the_wider_text_again(api: httpx.AsyncClient) -> None:
    await put_block(api, "Mira, a cartographer.", under=USER)
    await put_block(api, "Somebody else.")
    await delete_block(api)
    await update(api, "append", "She rows.")
    assert await texts(api) == {"user": "Mira, a cartographer.\nShe rows."}
    state = ok(await api.get(f"{CHAT}/state"), 200)["layers"]["blocks"]
    assert [(one["scope"], one["text"]) for one in state] == [
        ("chat", "Mira, a cartographer.\nShe rows."),
        ("user", "Mira, a cartographer."),
    ]


async def test_the_history_keeps_what_was_deleted(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put_block(api, "Mira, a cartographer.", under=USER)
    for text in ("A sailor.", "A smith."):
        clock.step(1)
        await put_block(api, text, status=201 if text == "A sailor." else 200)
    clock.step(1)
    await delete_block(api)
    found = [(one["operation"], one["content"], one["text"], one["scope"]) for one in await history(api)]
    assert found == [
        ("replace", None, "Mira, a cartographer.", "chat"),
        ("replace", "A smith.", "A smith.", "chat"),
        ("replace", "A sailor.", "A sailor.", "chat"),
        ("replace", "Mira, a cartographer.", "Mira, a cartographer.", "user"),
    ]
    clock.step(1)
    await put_block(api, "A smith.")
    assert await texts(api) == {"user": "A smith."}


async def test_a_deleted_tool_edit_does_not_return(api: httpx.AsyncClient) -> None:
    await update(api, "replace", "She rows.")
    await delete_block(api)
    assert await texts(api) == {}
    await append(api, talk(3, 4))
    await update(api, "append", "She sails.")
    assert await texts(api) == {"user": "She sails."}
    await cut_off(api, 3)
    assert await texts(api) == {}


async def test_a_deletion_holds_on_all_lines_and_in_forks(api: httpx.AsyncClient) -> None:
    await put_block(api, "A sailor.")
    await checkpoint(api, "then")
    await delete_block(api)
    await restore(api, "then")
    assert await texts(api) == {}
    await fork(api, "copy")
    assert await texts(api, under="/v1/chats/copy") == {}


async def test_a_former_name_of_the_character_has_the_same_block(api: httpx.AsyncClient) -> None:
    await put_block(api, "She trusts me.", under=f"{USER}/characters/Kai")
    ok(await api.post(f"{CHAT}/characters/Kai/rename", json={"name": "Ilse"}), 200)
    assert await texts(api) == {"user": "She trusts me."}
    await put_block(api, "She trusts nobody.", under=f"{USER}/characters/Ilse")
    await delete_block(api, under=f"{USER}/characters/Ilse")
    assert await texts(api) == {}


async def test_deleting_a_missing_block_is_a_404(api: httpx.AsyncClient) -> None:
    for label in ("user", "diary"):
        await delete_block(api, label, status=404)
    await put_block(api, "Mira.", under=USER)
    await delete_block(api, status=404)
    await put(api, status=200, settings={"blocks": {"enabled": False}})
    await put_block(api, "A sailor.")
    await delete_block(api)
    assert (await get(api, "/blocks"))["items"][0]["text"] == "Mira."
