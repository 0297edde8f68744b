"""Who wrote a text, whether a person changed it, and whether a context contains it: the same in every layer."""

from dataclasses import dataclass

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.layers.derived import EDITED, ORIGIN
from tests.api.test_contract import SCHEMAS
from tests.background import settle_rounds
from tests.talk import Json, append, context, cut_off, edit, get, ok, put, talk

SETTINGS: Json = {
    "history": {"keep_messages": 4, "grow_messages": 2, "edges": "every_message"},
    "memos": {"enabled": True, "every_messages": 4},
    "summary": {"enabled": True, "threshold_messages": 4, "keep_messages": 4},
    "scenes": {"enabled": True, "detect": False, "auto_hide": None},
}
WORDS = "They met at the lighthouse."


@dataclass(frozen=True)
class Text:
    """Where a layer's text is listed, how a person replaces it, and which segment contains it."""

    segment: str
    listed_at: str
    replace: tuple[str, str, str]

    async def read(self, api: httpx.AsyncClient) -> Json:
        item: Json = (await get(api, self.listed_at))["items"][0]
        return item

    async def edit(self, api: httpx.AsyncClient) -> None:
        method, path, name = self.replace
        item = await self.read(api)
        answer = await api.request(method, f"/v1/chats/c{path.format(**item)}", json={name: WORDS})
        ok(answer, 200)


TEXTS = {
    "memo": Text("memos", "/memos", ("PATCH", "/memos/{id}", "text")),
    "summary": Text("summary", "/summary/versions", ("PUT", "/summary", "text")),
    "scene": Text("recap", "/scenes", ("PATCH", "/scenes/{id}", "recap")),
    "recap": Text("recap", "/recap/versions", ("PUT", "/recap", "text")),
    "entry": Text("diary", "/diary", ("PATCH", "/diary/{id}", "content")),
}
HIDDEN: dict[str, Json] = {
    "memos": {"memos": {"position": "none"}},
    "summary": {"summary": {"position": "none"}},
    "recap": {"scenes": {"recap": {"position": "none"}}},
    "diary": {"diary": {"position": "none"}},
}


@pytest.fixture
async def filled_chat(api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A chat with a text in every layer, all of them made without a model."""
    await put(api, settings=SETTINGS)
    await append(api, talk(1, 12))
    ok(await api.post("/v1/chats/c/tools/save_memory", json={"content": "I kept the key."}), 200)
    for seq in (4, 8, 12):
        ok(await api.put(f"/v1/chats/c/scenes/breaks/{seq}"), 201)
    await settle_rounds(quoting_dispatcher, clock, rounds=4, wait_s=60)
    await append(api, talk(13, 16))
    await settle_rounds(quoting_dispatcher, clock, rounds=4, wait_s=60)


@pytest.mark.usefixtures("filled_chat")
@pytest.mark.parametrize("name", TEXTS)
async def test_an_edit_makes_a_person_the_origin(
    name: str, api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    text = TEXTS[name]
    made = await text.read(api)
    assert (made["origin"], made["edited"]) == ("tool" if name == "entry" else "extractive", False)
    await text.edit(api)
    await settle_rounds(quoting_dispatcher, clock, rounds=4, wait_s=60)
    edited = await text.read(api)
    assert (edited["origin"], edited["edited"]) == ("person", True)
    await text.edit(api)
    again = await text.read(api)
    assert (again["origin"], again["edited"]) == ("person", True), "it is still an edit of what the service had made"


@pytest.mark.usefixtures("filled_chat")
@pytest.mark.parametrize("name", TEXTS)
async def test_in_prompt_says_what_contexts_contain(name: str, api: httpx.AsyncClient) -> None:
    text = TEXTS[name]
    assert (await text.read(api))["in_prompt"] is True
    assert text.segment in {segment["name"] for segment in (await context(api))["segments"]}
    await put(api, status=200, settings=HIDDEN[text.segment])
    assert (await text.read(api))["in_prompt"] is False
    assert text.segment not in {segment["name"] for segment in (await context(api))["segments"]}


@pytest.mark.usefixtures("filled_chat")
@pytest.mark.parametrize(("budget", "pinned"), [("budget", False), ("pinned_budget", True)])
async def test_items_over_a_layers_budget_are_not_in_the_prompt(
    budget: str, pinned: bool, api: httpx.AsyncClient
) -> None:
    memo = (await get(api, "/memos"))["items"][0]
    ok(await api.patch(f"/v1/chats/c/memos/{memo['id']}", json={"pinned": pinned}), 200)
    await put(api, status=200, settings={"memos": {budget: {"type": "absolute", "value": 1}}})
    omitted = {(one["name"], one["why"]) for one in (await context(api))["omitted"]}
    assert (f"memo {memo['number']}", "budget") in omitted
    sources = {source for segment in (await context(api))["segments"] for source in segment["sources"]}
    listed = (await get(api, "/memos"))["items"]
    assert [one["in_prompt"] for one in listed] == [f"memo:{one['id']}" in sources for one in listed]
    assert [one["in_prompt"] for one in listed if one["pinned"] == pinned] == [False] * (1 if pinned else len(listed))
    assert (await get(api, f"/memos/{memo['id']}"))["in_prompt"] is False
    answer = ok(await api.patch(f"/v1/chats/c/memos/{memo['id']}", json={"text": WORDS}), 200)
    assert answer["in_prompt"] is False


async def test_a_diary_is_in_the_prompt_of_its_character(api: httpx.AsyncClient) -> None:
    await put(api, settings=SETTINGS, characters=[{"name": "Kai"}, {"name": "Mira"}])
    await append(api, talk(1, 2))
    for name in ("Kai", "Mira"):
        ok(await api.post("/v1/chats/c/diary", json={"content": WORDS, "character": name}), 201)
    await put(api, status=200, characters=[{"name": "Mira"}])
    for entry in (await get(api, "/diary"))["items"]:
        prompt = await api.get("/v1/chats/c/context", params={"character": entry["character"]})
        assert entry["in_prompt"] is (entry["character"] == "Mira")
        assert (f"diary:{entry['id']}" in prompt.text) is entry["in_prompt"]


async def test_a_text_created_by_a_person_does_not_count_as_edited(api: httpx.AsyncClient) -> None:
    await put(api, settings=SETTINGS)
    await append(api, talk(1, 2))
    path = "/v1/chats/c"
    for _ in range(2):
        ok(await api.put(f"{path}/summary", json={"text": WORDS}), 200)
        ok(await api.put(f"{path}/recap", json={"text": WORDS}), 200)
    entry = ok(await api.post(f"{path}/diary", json={"content": WORDS}), 201)
    ok(await api.patch(f"{path}/diary/{entry['id']}", json={"content": "He left."}), 200)
    memo = ok(await api.post(f"{path}/memos", json={"text": WORDS}), 201)
    ok(await api.patch(f"{path}/memos/{memo['id']}", json={"text": "He left."}), 200)
    scene = ok(await api.put(f"{path}/scenes/breaks/2"), 201)["items"][0]
    ok(await api.patch(f"{path}/scenes/{scene['id']}", json={"recap": WORDS}), 200)
    for text in TEXTS.values():
        written = await text.read(api)
        assert (written["origin"], written["edited"]) == ("person", False), text.listed_at


async def test_a_text_written_before_any_generation_is_not_edited(api: httpx.AsyncClient) -> None:
    await put(api, settings={"memos": {"every_messages": 2}})
    await append(api, talk(1, 2))
    (memo,) = (await get(api, "/memos"))["items"]
    assert memo["status"] == "pending"
    path = f"/v1/chats/c/memos/{memo['id']}"
    written = ok(await api.patch(path, json={"text": WORDS}), 200)
    assert (written["origin"], written["edited"], written["status"]) == ("person", False, "ready")
    await edit(api, "m1", content="He left.")
    assert ok(await api.get("/v1/work"), 200)["items"] == [], "a person's text is never made again by itself"
    refused = ok(await api.post(f"{path}/regenerate", json={}), 409)
    assert refused["code"] == "memo_edited"
    await cut_off(api, 2)
    (kept,) = (await get(api, "/memos"))["items"]
    assert (kept["text"], kept["origin"], kept["edited"]) == (WORDS, "person", False)


@pytest.mark.parametrize(
    ("field", "words"), [("origin", ORIGIN), ("edited", EDITED), ("in_prompt", "unless a small `max_tokens` trims it")]
)
def test_every_layer_describes_the_field_in_the_same_words(field: str, words: str) -> None:
    outs = {name: schema["properties"][field] for name, schema in SCHEMAS.items() if _has(name, schema, field)}
    assert len(outs) >= 7
    assert [name for name, one in outs.items() if words not in one["description"]] == []


def test_every_layer_has_the_same_origins() -> None:
    outs = [schema["properties"]["origin"] for name, schema in SCHEMAS.items() if _has(name, schema, "origin")]
    assert {frozenset(_enum(one)) for one in outs} == {frozenset(["model", "extractive", "tool", "person"])}


def _has(name: str, schema: Json, field: str) -> bool:
    return field in schema.get("properties", {}) and not name.startswith("Message")


def _enum(field: Json) -> list[str]:
    found: list[str] = field.get("enum") or field["anyOf"][0]["enum"]
    return found
