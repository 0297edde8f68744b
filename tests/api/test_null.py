"""In every PUT and PATCH an absent field stays, and null clears it, returns it to its default, or is a 422."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest

from app.chats.presets import PRESETS
from app.chats.settings import check_overrides
from tests.api.path_parameters import SCHEMA
from tests.talk import Json, append, get, ok, put, said, talk

SCHEMAS = SCHEMA["components"]["schemas"]
DEFAULTS = check_overrides({"preset": "memo"}).model_dump()

CLEARED: dict[tuple[str, str], tuple[Any, Any]] = {
    ("put_chat", "user_id"): ("mira", None),
    ("put_chat", "characters"): ([{"name": "Kai"}], []),
    ("put_chat", "user_name"): ("Mira", None),
    ("put_chat", "user_persona"): ("Mira, a cartographer.", None),
    ("put_chat", "system_prompt"): ("You are Kai.", None),
    ("put_chat", "settings"): ({"memos": {"every_messages": 4}}, DEFAULTS),
    ("put_chat", "time_zone"): ("Europe/Berlin", "UTC"),
    ("put_chat", "language"): ("en", None),
    ("put_chat", "metadata"): ({"theme": "dusk"}, {}),
    ("edit_message", "excluded"): (True, False),
    ("edit_message", "pinned"): (True, False),
    ("edit_message", "hidden"): (True, None),
    ("edit_message", "metadata"): ({"a": 1}, None),
    ("edit_memo", "pinned"): (True, False),
    ("edit_diary_entry", "kept"): (True, False),
    ("edit_scene", "title"): ("The pier", None),
}
OF_MEMORIES: dict[str, tuple[Any, Any]] = {
    "category": ("personal", None),
    "importance": (0.8, 0.5),
    "tags": (["family"], []),
    "pinned": (True, False),
    "archived": (True, False),
}
for scope in ("", "character_", "user_", "global_"):
    CLEARED |= {(f"edit_{scope}memory", field): values for field, values in OF_MEMORIES.items()}
"""What is set of each field that may be null, and what it is after null."""

OPTIONS = {("write_summary", "keep")}
"""Fields that say how to write; no answer shows them."""

FOLLOWS = {"work", "score"}
"""Fields that follow from others."""

SHOWN_AS = {("edit_message", "hidden"): "hidden_by"}


def bodies() -> Iterator[tuple[str, str, str, Json]]:
    """(operation, method, path, schema of the body) of every PUT and PATCH that has a body."""
    for path, methods in SCHEMA["paths"].items():
        for method, operation in methods.items():
            if method in ("put", "patch") and "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                yield operation["operationId"], method, path, resolve(schema)


def resolve(schema: Json) -> Json:
    """The schema behind a reference."""
    found: Json = SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


def takes_null(schema: Json) -> bool:
    """Whether the schema says that null is taken."""
    return {"type": "null"} in schema.get("anyOf", ())


def nested(schema: Json, location: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """The location and the schema of every field below those of a body itself; 0 is an item of a list."""
    schema = resolve(schema)
    for one in schema.get("anyOf", ()):
        yield from nested(one, location)
    if "items" in schema:
        yield from nested(schema["items"], (*location, 0))
    for name, field in schema.get("properties", {}).items():
        if location:
            yield (*location, name), field
        yield from nested(field, (*location, name))


SMALL: dict[str, Json] = {
    "put_chat": {"characters": [{"name": "Kai"}]},
    "put_messages": {
        "messages": [
            {"role": "assistant", "content": "Hm.", "tool_calls": [{"id": "call-1", "function": {"name": "look"}}]}
        ]
    },
}
"""A body of each operation whose fields have fields."""

NO_ONE: Json = {"persona": "", "disabled": False}
"""What a character is whose fields are left out: an answer leaves them out too."""

NESTED = [
    pytest.param(operation, path, location, schema, id="-".join(map(str, (operation, *location))))
    for operation, _, path, body in bodies()
    for location, schema in nested(body)
    if location[0] != "settings"  # they have a test of their own
]


FIELDS = [
    pytest.param(operation, method, path, schema, name, id=f"{operation}-{name}")
    for operation, method, path, schema in bodies()
    for name in schema["properties"]
    if (operation, name) not in OPTIONS
]


def test_the_effect_of_null_is_listed_for_every_field() -> None:
    nullable = {
        (operation, name)
        for operation, _, _, schema in bodies()
        for name, told in schema["properties"].items()
        if takes_null(told)
    }
    assert nullable == set(CLEARED) | OPTIONS


async def test_null_keeps_a_summary_as_the_default_does(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    written = ok(await api.put("/v1/chats/c/summary", json={"text": "They met.", "keep": None}), 200)
    assert (written["kept_text"], written["text"]) == ("They met.", "")


@pytest.fixture
async def ids(api: httpx.AsyncClient) -> Json:
    """The path parameters of a chat that has an item of each kind."""
    await append(api, talk(1, 8))
    ok(await api.put("/v1/chats/c/recap", json={"text": "They met at sea."}), 200)
    ok(await api.post("/v1/chats/c/messages/m2/swipes", json={"content": "Another."}), 201)
    return {
        "chat_id": "c",
        "user_id": "mira",
        "name": "Kai",
        "message_id": "m2",
        "key": "lamp",
        "label": "user",
        "memo_id": (await get(api, "/memos"))["items"][0]["id"],
        "entry_id": ok(await api.post("/v1/chats/c/diary", json={"content": "She came back."}), 201)["id"],
        "scene_id": ok(await api.put("/v1/chats/c/scenes/breaks/4"), 201)["items"][0]["id"],
        "memory_id": ok(await api.post("/v1/chats/c/memories", json={"content": "She came back."}), 201)["id"],
    }


@pytest.mark.parametrize(("operation", "method", "path", "schema", "name"), FIELDS)
async def test_null_clears_or_is_refused(
    api: httpx.AsyncClient, ids: Json, operation: str, method: str, path: str, schema: Json, name: str
) -> None:
    if "{memory_id}" in path:
        memories = path.partition("/{memory_id}")[0].format(**ids)
        ids["memory_id"] = ok(await api.post(memories, json={"content": "She came back."}), 201)["id"]
    url = path.format(**ids)
    needed = {one: schema["examples"][0][one] for one in schema.get("required", ())}
    if not takes_null(schema["properties"][name]):
        assert "default" not in schema["properties"][name]
        problem = ok(await api.request(method, url, json=needed | {name: None}), 422)
        assert problem["errors"][0]["loc"] == ["body", name]
        return
    value, cleared = CLEARED[operation, name]
    shown = SHOWN_AS.get((operation, name), name)
    given = ok(await api.request(method, url, json=needed | {name: value}), 200)
    assert given[shown] != cleared
    null = ok(await api.request(method, url, json=needed | {name: None}), 200)
    assert null[shown] == cleared
    assert {field for field in given if given[field] != null[field]} <= {shown, *FOLLOWS}


def leave_out(operation: str, location: tuple[str | int, ...], **instead: Any) -> Json:
    """The small body of an operation without the field at a location, or with `instead` of it."""
    body = deepcopy(SMALL[operation])
    holder: Any = body
    for step in location[:-1]:
        holder = holder[step]
    holder.pop(location[-1], None)
    holder.update(instead)
    return body


async def small(api: httpx.AsyncClient, operation: str, chat_id: str) -> list[Json]:
    """The characters or the messages of a chat, without what the server makes where it is not given."""
    if operation == "put_chat":
        found = ok(await api.get(f"/v1/chats/{chat_id}"), 200)["characters"]
        return [NO_ONE | {name: one[name] for name in one.keys() - {"id"}} for one in found]
    items = ok(await api.get(f"/v1/chats/{chat_id}/messages"), 200)["items"]
    return [{name: one[name] for name in one.keys() - {"id", "sent_at"}} for one in items]


@pytest.mark.parametrize(("operation", "path", "location", "schema"), NESTED)
async def test_null_in_a_nested_field_is_its_default_or_is_refused(
    api: httpx.AsyncClient, operation: str, path: str, location: tuple[str | int, ...], schema: Json
) -> None:
    for chat_id in ("absent", "null"):
        await put(api, chat_id)
    null = leave_out(operation, location, **{str(location[-1]): None})
    if not takes_null(schema):
        assert "default" not in schema
        problem = ok(await api.put(path.format(chat_id="null"), json=null), 422)
        assert problem["errors"][0]["loc"] == ["body", *location]
        return
    ok(await api.put(path.format(chat_id="null"), json=null), 200)
    ok(await api.put(path.format(chat_id="absent"), json=leave_out(operation, location)), 200)
    assert await small(api, operation, "null") == await small(api, operation, "absent")


async def test_null_clears_what_a_character_had(api: httpx.AsyncClient) -> None:
    created = await put(api, characters=[{"name": "Kai", "persona": "A lighthouse keeper.", "disabled": True}])
    cleared = await put(api, status=200, characters=[{"name": "Kai", "persona": None, "disabled": None}])
    assert cleared["characters"] == [created["characters"][0] | {"persona": "", "disabled": False}]


@pytest.mark.parametrize(
    "section", sorted(resolve(SCHEMAS["ChatPut"]["properties"]["settings"]["anyOf"][0])["properties"])
)
async def test_null_returns_a_setting_to_the_preset(api: httpx.AsyncClient, section: str) -> None:
    preset = check_overrides({"preset": "companion"}).model_dump()
    await put(api, settings={"preset": "companion"})
    whole: Any = None if section != "preset" else "companion"
    inner = preset[section] if isinstance(preset[section], dict) else {}
    for value in (whole, *({name: None} for name in inner)):
        changed = await put(api, status=200, settings={section: value})
        assert changed["settings"] == preset
    assert set(PRESETS) >= {"companion"}


async def test_a_patch_without_any_field_is_refused(api: httpx.AsyncClient, ids: Json) -> None:
    for _, method, path, _ in bodies():
        if method == "patch":
            problem = ok(await api.patch(path.format(**ids), json={}), 422)
            assert problem["errors"][0]["loc"][0] == "body"


async def test_a_reimport_keeps_what_it_leaves_out(api: httpx.AsyncClient) -> None:
    call = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    given = {
        "name": "Kai",
        "kind": "thought",
        "importance": 0.5,
        "tool_calls": [call],
        "tool_call_id": "call-0",
        "metadata": {"a": 1},
        "sent_at": "2026-03-01T12:00:00Z",
    }
    await append(api, [said(1), said(2, **given)])
    before = (await get(api, "/messages"))["items"]
    left_out = ok(await api.put("/v1/chats/c/messages", json={"messages": talk(1, 2)}), 200)
    assert (left_out["changed"], (await get(api, "/messages"))["items"]) == (0, before)
    edited = said(2, content="Otherwise.")
    assert ok(await api.put("/v1/chats/c/messages", json={"messages": [said(1), edited]}), 200)["changed"] == 1
    again = ok(await api.put("/v1/chats/c/messages", json={"messages": [said(1), edited | {"name": "Kai"}]}), 200)
    assert again["changed"] == 0
    null = said(2) | {name: None for name in given if name != "sent_at"}
    assert ok(await api.put("/v1/chats/c/messages", json={"messages": [said(1), null]}), 200)["changed"] == 1
    (_, cleared) = (await get(api, "/messages"))["items"]
    assert {cleared[name] for name in given if name != "sent_at"} == {None}
    assert cleared["sent_at"] == "2026-03-01T12:00:00Z"
    problem = ok(await api.put("/v1/chats/c/messages", json={"messages": [said(1, sent_at=None)]}), 422)
    assert problem["errors"][0]["loc"] == ["body", "messages", 0, "sent_at"]
