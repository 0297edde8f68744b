"""A reply that imitates an inline time stamp is stored without it."""

import httpx
import pytest

from tests.talk import Json, add_swipe, append, context, edit, get, ok, put, reimport, said, select_swipe

STAMP = "[04/01 22:15] Sakura: "


async def inline(api: httpx.AsyncClient) -> None:
    await put(api, settings={"timestamps": "inline"}, characters=[{"name": "Sakura"}])


async def content(api: httpx.AsyncClient, message_id: str = "m2") -> str:
    found: str = (await get(api, f"/messages/{message_id}"))["content"]
    return found


@pytest.mark.parametrize("name", ["Sakura", None])
async def test_an_echoed_stamp_is_dropped_and_a_retry_is_known(api: httpx.AsyncClient, name: str | None) -> None:
    await inline(api)
    messages = [said(1), said(2, name=name, content=f"{STAMP}I stayed.")]
    first = await append(api, messages)
    assert first["messages"][1]["content"] == "I stayed."
    assert first["messages"][1] == {key: (await get(api, "/messages/m2"))[key] for key in first["messages"][1]}
    assert (await append(api, messages, status=200))["messages"] == first["messages"]
    assert (await append(api, [said(2, content="I stayed.")], status=409))["code"] == "message_id_taken"
    assert (await context(api, format="text"))["text"].count("Sakura: ") == 1


@pytest.mark.parametrize(
    "message",
    [
        said(1, content=f"{STAMP}I stayed."),
        said(2, content="[04/01 22:15] Mira: I stayed."),
        said(2, name="Kai", content=f"{STAMP}I stayed."),
        said(2, content=f" {STAMP}I stayed."),
        said(2, content="[4/1 22:15] Sakura: I stayed."),
        said(2, content="[04/01 22:15] Sakura I stayed."),
        said(2, content=STAMP),
        said(2, role="narrator", content=f"{STAMP}I stayed."),
    ],
)
async def test_any_other_text_is_stored_as_it_is(api: httpx.AsyncClient, message: Json) -> None:
    await inline(api)
    (stored,) = (await append(api, [message]))["messages"]
    assert stored["content"] == message["content"]


async def test_without_inline_timestamps_a_stamp_is_text(api: httpx.AsyncClient) -> None:
    await put(api, characters=[{"name": "Sakura"}])
    (stored,) = (await append(api, [said(2, content=f"{STAMP}I stayed.")]))["messages"]
    assert stored["content"] == f"{STAMP}I stayed."


async def test_edits_and_swipes_are_stored_without_an_echo(api: httpx.AsyncClient) -> None:
    await inline(api)
    await append(api, [said(1), said(2, content="I stayed.")])
    assert not (await edit(api, "m2", content=f"{STAMP}I stayed."))["edited"]
    assert (await edit(api, "m2", content=f"{STAMP}I left."))["content"] == "I left."
    assert (await add_swipe(api, "m2", f"{STAMP}I waited."))["swipes"] == ["I left.", "I waited."]
    given = said(4, swipes=[f"{STAMP}A.", f"{STAMP}B."], content=f"{STAMP}B.")
    await append(api, [given])
    assert (await get(api, "/messages/m4"))["swipes"] == ["A.", "B."]


@pytest.mark.parametrize("prefix", [STAMP * 2, f"[03/31 08:00] Sakura: {STAMP}", STAMP * 3])
async def test_each_copy_of_an_echo_is_dropped(api: httpx.AsyncClient, prefix: str) -> None:
    await inline(api)
    messages = [said(1), said(2, content=f"{prefix}I stayed."), said(3)]
    first = await append(api, messages)
    assert first["messages"][1]["content"] == "I stayed."
    assert (await append(api, messages, status=200))["messages"] == first["messages"]
    assert not (await edit(api, "m2", content=f"{prefix}I stayed."))["edited"]
    assert (await add_swipe(api, "m2", f"{prefix}I left."))["content"] == "I left."


async def test_a_stamp_without_text_stays_after_an_echo(api: httpx.AsyncClient) -> None:
    await inline(api)
    (stored,) = (await append(api, [said(2, content=STAMP * 2)]))["messages"]
    assert stored["content"] == STAMP


@pytest.mark.parametrize("selected", [0, 1, 2])
async def test_given_swipes_keep_their_indexes_without_echoes(api: httpx.AsyncClient, selected: int) -> None:
    await inline(api)
    texts = ["I stayed.", "I stayed.", "I left."]
    given = {"id": "m2", "role": "assistant", "swipes": [f"{STAMP}{texts[0]}", *texts[1:]], "selected_swipe": selected}
    first = await append(api, [said(1), given])
    assert first["messages"][1]["content"] == texts[selected]
    assert await append(api, [said(1), given], status=200) == first | {"created": 0}
    line = (await get(api, ""))["line"]
    assert await reimport(api, [said(1), given]) == {"added": 0, "changed": 0, "removed": 0, "line": line}
    for index, text in enumerate(texts):
        shown = await select_swipe(api, "m2", index)
        assert (shown["content"], shown["swipes"]) == (text, texts)


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("before", ["off", "inline"])
async def test_a_re_import_compares_without_the_echo(
    api: httpx.AsyncClient, with_ids: bool, before: str, copies: int
) -> None:
    await put(api, settings={"timestamps": before}, characters=[{"name": "Sakura"}])
    messages = [said(1), said(2, content=f"{STAMP * copies}I stayed."), said(3)]
    await append(api, messages)
    await put(api, settings={"timestamps": "inline"}, status=200)
    line, stored = (await get(api, ""))["line"], await content(api)
    bare = [messages[0], messages[1] | {"content": "I stayed."}, messages[2]]
    for wanted in (messages, bare):
        body = {"messages": wanted if with_ids else [one | {"id": None} for one in wanted]}
        outcome = ok(await api.put("/v1/chats/c/messages", json=body), 200)
        assert outcome == {"added": 0, "changed": 0, "removed": 0, "line": line}
    assert await content(api) == stored


async def test_an_echo_with_a_former_name_is_dropped(api: httpx.AsyncClient) -> None:
    await inline(api)
    messages = [said(1), said(2, name="Sakura", content=f"{STAMP}I stayed."), said(3)]
    line = (await append(api, messages)) and (await get(api, ""))["line"]
    ok(await api.post("/v1/chats/c/characters/Sakura/rename", json={"name": "Hana"}), 200)
    outcome = ok(await api.put("/v1/chats/c/messages", json={"messages": messages}), 200)
    assert outcome == {"added": 0, "changed": 0, "removed": 0, "line": line}
    await edit(api, "m2", content=f"[04/01 22:15] Hana: {STAMP}I left.")
    assert await content(api) == "I left."


async def test_the_instruction_says_who_adds_the_stamps(api: httpx.AsyncClient) -> None:
    async def instruction() -> str:
        return "".join(one["text"] for one in (await context(api))["segments"] if one["name"] == "instruction")

    await inline(api)
    assert await instruction() == "", "an empty chat has no stamps"
    await append(api, [said(1)])
    assert "added by the service" in await instruction()
    await put(api, settings={"instruction": "Be brief."}, status=200)
    assert await instruction() == "Be brief."
    await put(api, settings={"timestamps": "off", "instruction": None}, status=200)
    assert await instruction() == ""
