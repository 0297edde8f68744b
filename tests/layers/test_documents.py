"""What search may find of a line: every text that is valid, and none that is stale or deleted."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.layers.documents import Document, list_documents
from app.registry import LAYERS
from tests.background import settle_rounds
from tests.layers.test_origin import SETTINGS
from tests.talk import Json, append, edit, get, ok, put, talk


@pytest.fixture
async def filled_chat(api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A chat of 16 messages with a text in every layer."""
    await put(api, settings=SETTINGS)
    await append(api, talk(1, 12))
    ok(await api.post("/v1/chats/c/tools/save_memory", json={"content": "I kept the key."}), 200)
    ok(await api.post("/v1/chats/c/memos", json={"text": "They met at sea.", "after_seq": 6}), 201)
    for seq in (4, 8, 12):
        ok(await api.put(f"/v1/chats/c/scenes/breaks/{seq}"), 201)
    await settle_rounds(quoting_dispatcher, clock, rounds=4, wait_s=60)
    await append(api, talk(13, 16))
    await settle_rounds(quoting_dispatcher, clock, rounds=4, wait_s=60)


async def find(api: httpx.AsyncClient, database: Database, tenant: str) -> list[Document]:
    line = (await get(api, ""))["line"]
    async with database.unit_of_work() as db_session:
        return await list_documents(db_session, LAYERS, (chat_key(tenant, "c"), line))


async def expect(api: httpx.AsyncClient) -> dict[str, str]:
    """The text of each source that is valid, by the lists of the API."""

    async def items(path: str) -> list[Json]:
        found: list[Json] = (await get(api, path))["items"]
        return found

    found = {f"memo:{memo['id']}": memo["text"] for memo in await items("/memos") if _is_valid(memo)}
    found |= {f"diary:{entry['id']}": entry["content"] for entry in await items("/diary")}
    scenes = [scene for scene in await items("/scenes") if not scene["open"] and _is_valid(scene)]
    found |= {f"scene:{scene['id']}": f"{scene['title'] or ''}\n{scene['recap']}".strip("\n") for scene in scenes}
    for name in ("summary", "recap"):
        version = await get(api, f"/{name}")
        found |= {f"{name}:{version['version']}": version["text"]} if version["in_prompt"] else {}
    return found


def _is_valid(item: Json) -> bool:
    return item["status"] == "ready" and (item["origin"] == "person" or not item["stale"])


@pytest.mark.usefixtures("filled_chat")
async def test_documents_are_the_valid_texts_of_the_lists(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    found = await find(api, database, tenant)
    assert {one.source: one.text for one in found} == await expect(api)
    kinds = {one.source.partition(":")[0] for one in found}
    assert kinds == {"memo", "summary", "diary", "scene", "recap"}
    ranges = {one.text: (one.first_seq, one.last_seq) for one in found}
    assert (ranges["They met at sea."], ranges["I kept the key."]) == ((0, 6), (12, 12))
    assert min(one.first_seq for one in found if one.source.startswith("scene:")) == 1


@pytest.mark.usefixtures("filled_chat")
async def test_an_edit_removes_the_documents_made_from_the_message(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    former = {one.source for one in await find(api, database, tenant)}
    await edit(api, "m2", content="The lamp is out.")
    found = await find(api, database, tenant)
    assert {one.source: one.text for one in found} == await expect(api)
    lost = {source.partition(":")[0] for source in former - {one.source for one in found}}
    assert lost == {"memo", "summary", "scene", "recap"}
