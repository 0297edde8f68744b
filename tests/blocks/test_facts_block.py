"""The block `facts` consists of the most important memories of a chat, unless it was written."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.blocks.asking import edit_block, history, put_block, shown, texts, update
from tests.consolidation import learning
from tests.facts.asking import KAI, USER, begin, call, checkpoint, fork, learn_wide, restore, switch_to
from tests.memories.asking import Learner, change, delete, write
from tests.scripted_model import ScriptedModel
from tests.talk import (
    CHAT,
    Act,
    add_swipe,
    append,
    context,
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

FERRY = "Mira's brother Tomas is a ferryman."
FACTS = {"facts": f"- {FERRY}"}


async def test_a_memory_of_importance_0_7_refreshes_the_block(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await learn("Mira is afraid of the sea.", "m1", importance=0.69)
    clock.step(1)
    await write(api, "She once was in Oslo.", importance=0.2)
    assert await texts(api) == await shown(api) == {}
    ok(await api.get(f"{CHAT}/blocks/facts"), 404)
    clock.step(1)
    await learn(FERRY, "m1", importance=0.7)
    first = f"- Mira is afraid of the sea.\n- She once was in Oslo.\n- {FERRY}"
    assert await texts(api) == await shown(api) == {"facts": first}
    clock.step(1)
    await write(api, "It rains.", importance=0.69)
    assert await texts(api) == await shown(api) == {"facts": first}
    clock.step(1)
    written = await write(api, "The lamp  is\nher mother's.", importance=0.9)
    second = f"{first}\n- It rains.\n- The lamp is her mother's."
    assert await texts(api) == await shown(api) == {"facts": second}
    await change(api, written["id"], importance=0.5)
    assert await texts(api) == await shown(api) == {"facts": first}


async def test_quotations_by_rules_have_to_be_important(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await learn("Last Friday I went to a council meeting.", "m1", importance=0.69, origin="extractive")
    clock.step(1)
    await learn("Mira is afraid of the sea.", "m1", importance=0.1)
    await learn(FERRY, "m1", importance=0.7, origin="extractive")
    assert await texts(api) == await shown(api) == {"facts": f"- Mira is afraid of the sea.\n- {FERRY}"}


async def test_the_50_most_important_memories_are_in_the_block(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    for n in range(55):
        await write(api, f"Lamp{n}x.", importance=n / 100)
        clock.step(1)
    await write(api, FERRY, importance=0.8)
    lines = (await shown(api))["facts"].splitlines()
    assert lines == [*(f"- Lamp{n}x." for n in range(6, 55)), f"- {FERRY}"]


async def test_other_memories_stay_when_an_important_one_goes(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 6))
    await learn("Mira is afraid of the sea.", "m1", importance=0.5)
    clock.step(1)
    found = await learn(FERRY, "m2", importance=0.8)
    others = {"facts": "- Mira is afraid of the sea."}
    await change(api, found.memory_id, archived=True)
    assert await texts(api) == await shown(api) == others
    await change(api, found.memory_id, archived=False)
    clock.step(1)
    await learn("Mira's brother Tomas is no ferryman.", "m3", importance=0.5)
    assert await texts(api) == await shown(api) == others
    await delete(api, found.memory_id)
    assert await texts(api) == await shown(api) == others
    await soft_delete(api, "m2")
    assert await texts(api) == await shown(api) == {}, "no important memory has arrived"


async def test_memories_learnt_together_are_shown_together(
    api: httpx.AsyncClient, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    said = (("The lamp is old.", 0.6), (FERRY, 0.8), ("It rains in Oslo.", 0.5))
    model.otherwise = learning.learns(
        {"ferryman": lambda n: "\n".join(learning.memory(text, n, importance=rated) for text, rated in said)}
    )
    await learning.begin(api)
    await learning.turn(api, 1, "My brother Tomas is a ferryman.")
    await learning.learn_all(dispatcher, clock)
    assert await shown(api) == {"facts": "\n".join(f"- {text}" for text, _ in said)}


async def test_an_important_memory_refreshes_all_scopes_read(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await begin(api, "d")
    where = {CHAT: "Chat.", f"{USER}/characters/Kai": "Kai.", USER: "User.", "/v1": "All."}
    for under, content in where.items():
        await write(api, content, under=under, importance=0.5)
        clock.step(1)
    assert await texts(api) == await shown(api) == {}
    written = await write(api, FERRY, importance=0.7)
    assert await texts(api) == await shown(api) == {"facts": f"- Chat.\n- Kai.\n- User.\n- All.\n- {FERRY}"}
    assert await texts(api, under=USER) == await shown(api, chat_id="d") == {}
    clock.step(1)
    await write(api, "Mira.", under=USER, importance=0.9)
    assert await texts(api, under=USER) == {"facts": "- User.\n- Mira."}
    assert await shown(api, chat_id="d") == {"facts": "- Kai.\n- User.\n- All.\n- Mira."}
    await delete(api, written["id"])
    assert await shown(api) == {"facts": "- Chat.\n- Kai.\n- User.\n- All.\n- Mira."}


async def test_the_facts_block_names_its_memories_as_sources(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    found = await learn(FERRY, "m1", importance=0.8)
    clock.step(60)
    await update(api, "append", "Mira rows, too.", label="facts")
    block = await get(api, "/blocks/facts")
    assert block["text"] == f"- {FERRY}\nMira rows, too."
    assert block["sources"] == [f"memory:{found.memory_id}", "message:m2"]
    assert (block["origin"], block["edited"], block["scope"]) == ("tool", False, "chat")
    (segment,) = [one for one in (await context(api))["segments"] if one["name"] == "blocks"]
    assert segment["sources"] == ["block:facts", f"memory:{found.memory_id}"]
    appended, made = await history(api, "facts")
    assert (appended["operation"], appended["text"]) == ("append", f"- {FERRY}\nMira rows, too.")
    assert (made["operation"], made["origin"], made["text"]) == ("replace", "extractive", f"- {FERRY}")
    assert (made["applied"], made["edited"], made["held_until"]) == (True, False, None)
    pages = [await get(api, "/blocks/facts/history", limit=1)]
    pages.append(await get(api, "/blocks/facts/history", limit=1, cursor=pages[0]["next_cursor"]))
    assert [page["items"] for page in pages] == [[appended], [made]]
    state = ok(await api.get(f"{CHAT}/state"), 200)["layers"]["blocks"]
    assert [(one["label"], one["text"]) for one in state] == [("facts", block["text"])]


async def test_a_block_made_only_of_memories_is_extractive(api: httpx.AsyncClient) -> None:
    await begin(api)
    written = await write(api, FERRY, importance=0.8)
    (block,) = (await get(api, "/blocks"))["items"]
    assert block == await get(api, "/blocks/facts")
    assert (block["origin"], block["edited"], block["created_at"]) == ("extractive", False, written["created_at"])
    assert block["sources"] == [f"memory:{written['id']}"]
    state = ok(await api.get(f"{CHAT}/state"), 200)["layers"]["blocks"]
    assert [(one["scope"], one["text"], one["origin"]) for one in state] == [("chat", f"- {FERRY}", "extractive")]


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
async def test_a_memory_leaves_and_rejoins_the_block_with_its_reply(
    api: httpx.AsyncClient, learn: Learner, scope: str, way: str
) -> None:
    take_back, bring_back = TAKEN_BACK[way]
    await learn_wide(api, scope=scope)
    await begin(api, "d")
    await append(api, talk(1, 2))
    await learn(FERRY, "m2", importance=0.8)
    elsewhere = {} if scope == "chat" else FACTS
    assert await texts(api) == await shown(api) == FACTS
    assert await texts(api, under="/v1/chats/d") == await shown(api, chat_id="d") == elsewhere
    await take_back(api)
    assert await texts(api) == await shown(api) == {}
    assert await texts(api, under="/v1/chats/d") == await shown(api, chat_id="d") == {}
    await bring_back(api)
    assert await texts(api) == await shown(api) == FACTS
    assert await texts(api, under="/v1/chats/d") == await shown(api, chat_id="d") == elsewhere


async def test_the_facts_block_follows_restores_and_line_switches(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await checkpoint(api, "before")
    await append(api, talk(3, 4))
    await learn(FERRY, "m4", importance=0.8)
    line = (await get(api, ""))["line"]
    await fork(api, "with")
    await fork(api, "without", at_seq=2)
    await restore(api, "before")
    assert await texts(api) == await shown(api) == {}
    assert await texts(api, line=line) == await shown(api, line=line) == FACTS
    await switch_to(api, line)
    assert await shown(api) == FACTS
    await cut_off(api, 3)
    assert await texts(api) == await shown(api) == {}
    assert await texts(api, under="/v1/chats/with") == await shown(api, chat_id="with") == FACTS
    assert await texts(api, under="/v1/chats/without") == await shown(api, chat_id="without") == {}


async def test_a_context_before_a_message_has_the_block_of_that_time(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 6))
    await learn(FERRY, "m4", importance=0.8)
    assert await shown(api, before="m4") == {}
    assert await shown(api, before="m5") == FACTS


@pytest.mark.parametrize("scope", ["chat", "user"])
async def test_forgotten_and_archived_memories_leave_the_facts_block(
    api: httpx.AsyncClient, learn: Learner, scope: str
) -> None:
    await learn_wide(api, scope=scope)
    await begin(api, "d")
    await append(api, talk(1, 2))
    found = await learn(FERRY, "m2", importance=0.8)
    await change(api, found.memory_id, archived=True)
    assert await texts(api) == await shown(api) == {}
    assert await shown(api, chat_id="d") == ({} if scope == "chat" else FACTS), "changed for its chat alone"
    await change(api, found.memory_id, archived=False)
    assert await texts(api) == await shown(api) == FACTS
    await delete(api, found.memory_id)
    assert await texts(api) == await shown(api) == {}
    if scope == "user":
        await delete(api, found.memory_id, under=USER)
        assert await shown(api, chat_id="d") == {}


async def test_the_newest_text_of_a_memory_holds(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 6))
    first = await learn(FERRY, "m2", importance=0.9)
    clock.step(1)
    second = await learn("Mira's brother Tomas is no ferryman.", "m4", importance=0.7)
    assert second.memory_id == first.memory_id
    assert await shown(api) == {"facts": "- Mira's brother Tomas is no ferryman."}
    clock.step(1)
    await learn("Mira's brother Tomas is a ferryman!!", "m6", importance=0.3)
    assert await texts(api) == await shown(api) == {}
    await soft_delete(api, "m6")
    await soft_delete(api, "m4")
    assert await texts(api) == await shown(api) == FACTS


async def test_a_text_by_a_person_hides_the_memories(api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "d")
    await write(api, FERRY, importance=0.8, under=USER)
    await put_block(api, "Mira.", label="facts")
    assert await texts(api) == await shown(api) == {"facts": "Mira."}
    block = await get(api, "/blocks/facts")
    assert (block["origin"], block["edited"], block["sources"]) == ("person", False, [])
    await write(api, "She has a sister.", importance=1)
    assert await shown(api) == {"facts": "Mira."}
    assert await shown(api, chat_id="d") == FACTS
    await put_block(api, "Tomas.", label="facts", under=USER)
    assert await shown(api, chat_id="d") == {"facts": "Tomas."}
    await put_block(api, "", label="facts", under=USER, status=200)
    assert await shown(api, chat_id="d") == {}


async def test_memories_follow_what_a_tool_wrote(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    await learn(FERRY, "m1", importance=0.8)
    clock.step(1)
    await update(api, "replace", "Tomas is a ferryman.", label="facts")
    assert await texts(api) == await shown(api) == {"facts": "Tomas is a ferryman."}
    clock.step(1)
    found = await learn("Mira fears the sea.", "m1", importance=0.9)
    await update(api, "append", "It rains.", label="facts")
    both = {"facts": "Tomas is a ferryman.\n- Mira fears the sea.\nIt rains."}
    assert await texts(api) == await shown(api) == both
    block = await get(api, "/blocks/facts")
    assert block["sources"] == [f"memory:{found.memory_id}", "message:m2"]
    assert (block["origin"], block["scope"], block["edited"]) == ("tool", "chat", False)
    assert [(one["operation"], one["origin"], one["text"]) for one in await history(api, "facts")] == [
        ("append", "tool", both["facts"]),
        ("append", "extractive", "Tomas is a ferryman.\n- Mira fears the sea."),
        ("replace", "tool", "Tomas is a ferryman."),
        ("replace", "extractive", f"- {FERRY}"),
    ]
    await put_block(api, both["facts"], label="facts", status=200)
    await write(api, "The lamp is broken.", importance=1)
    assert await texts(api) == await shown(api) == both, "a person has written it as a whole"


async def test_what_a_tool_condensed_does_not_return(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    for n in range(1, 9):
        await learn(f"Detail{n}x.", "m1", importance=0.5)
    found = await learn(FERRY, "m1", importance=0.8)
    clock.step(1)
    await update(api, "replace", "Short: all is well.", label="facts")
    clock.step(1)
    await learn("It rains in Oslo.", "m1", importance=0.5)
    await learn("The lamp is her mother's.", "m1", importance=0.7)
    text = {"facts": "Short: all is well.\n- It rains in Oslo.\n- The lamp is her mother's."}
    assert await texts(api) == await shown(api) == text
    await delete(api, found.memory_id)
    assert await texts(api) == await shown(api) == text


async def test_many_edits_keep_memories_coming(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await write(api, FERRY, importance=0.8)
    for n in range(51):
        await edit_block(api, "append", f"Line {n}.", label="facts")
    lines = [f"- {FERRY}", *(f"Line {n}." for n in range(51))]
    assert (await texts(api))["facts"].splitlines() == lines
    await write(api, "Mira fears the sea.", importance=0.9)
    assert await texts(api) == await shown(api)
    assert (await texts(api))["facts"].splitlines() == [*lines[:-1], "- Mira fears the sea.", lines[-1]]
    block = await get(api, "/blocks/facts")
    assert (block["origin"], block["edited"]) == ("person", True)
    await put_block(api, "Mira.", label="facts", status=200)
    for n in range(51):
        await edit_block(api, "append", f"Line {n}.", label="facts")
    await write(api, "The lamp is broken.", importance=0.9)
    assert (await texts(api))["facts"].splitlines() == ["Mira.", *lines[1:]]


async def test_a_person_can_edit_the_facts_block(api: httpx.AsyncClient) -> None:
    await begin(api)
    written = await write(api, FERRY, importance=0.8)
    assert (await edit_block(api, "append", "He is kind.", label="facts"))["edited"]
    await edit_block(api, "search_replace", "no", "nothing like it", label="facts", status=409)
    await edit_block(api, "search_replace", "a sailor", "a ferryman", label="facts")
    assert await shown(api) == {"facts": "- Mira's brother Tomas is a sailor.\nHe is kind."}
    await delete(api, written["id"])
    assert await texts(api) == await shown(api) == {"facts": "He is kind."}
    edits = [(one["origin"], one["applied"]) for one in await history(api, "facts")]
    assert edits == [("person", False), ("person", True)]


async def test_memories_never_displace_text_added_by_a_person(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    await edit_block(api, "append", "y" * 1_900, label="facts")
    await write(api, FERRY, importance=0.8)
    clock.step(1)
    await write(api, "x" * 90, importance=0.7)
    assert await shown(api) == await texts(api) == {"facts": f"- {FERRY}\n{'y' * 1_900}"}
    texts_made = [one["text"] for one in await history(api, "facts")]
    assert texts_made == [f"- {FERRY}", f"- {FERRY}\n{'y' * 1_900}"]


async def test_a_tool_edits_the_text_made_from_memories(api: httpx.AsyncClient, learn: Learner) -> None:
    await learn_wide(api)
    await append(api, talk(1, 2))
    await write(api, FERRY, importance=0.8)
    answer = await update(api, "search_replace", "Mira Voss", "Mira", label="facts")
    assert "- Mira Voss's brother" in answer
    assert "reads:\n- Mira Voss's" in await update(api, "search_replace", "x", "Ines", label="facts")
    assert await texts(api) == {"facts": "- Mira Voss's brother Tomas is a ferryman."}
    assert len(await history(api, "facts", under=USER)) == 1, "the tool writes into the scope `learn_scope`"
    await soft_delete(api, "m2")
    assert await texts(api) == await shown(api) == FACTS


async def test_each_scope_has_its_own_facts_block(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await begin(api)
    where = {CHAT: "Chat.", f"{USER}/characters/Kai": "Kai.", USER: "User.", "/v1": "All."}
    for under, content in where.items():
        await write(api, content, under=under, importance=0.9)
        clock.step(1)
    assert await texts(api) == await shown(api) == {"facts": "- Chat.\n- Kai.\n- User.\n- All."}
    for under, content in list(where.items())[1:]:
        assert await texts(api, under=under) == {"facts": f"- {content}"}
        (block,) = ok(await api.get(f"{under}/blocks"), 200)["items"]
        assert block == ok(await api.get(f"{under}/blocks/facts"), 200)
        assert (block["scope"], block["character"]) == {
            "Kai.": ("character", "Kai"),
            "User.": ("user", None),
            "All.": ("global", None),
        }[content]
    assert (await edit_block(api, "append", "More.", label="facts", under=USER))["text"] == "- User.\nMore."
    assert (await shown(api))["facts"] == "- Chat.\n- Kai.\n- User.\n- All.\nMore."


async def test_other_users_and_characters_do_not_get_the_memories(api: httpx.AsyncClient) -> None:
    await begin(api)
    await put(api, "other-user", user_id="ines", characters=[KAI])
    await put(api, "other-character", user_id="mira", characters=[{"name": "Ines"}])
    await put(api, "no-user", characters=[KAI])
    await put(api, "two", user_id="mira", characters=[KAI, {"name": "Ines"}])
    await write(api, "Chat.", importance=0.9)
    await write(api, "Kai.", under=f"{USER}/characters/Kai", importance=0.9)
    assert (await shown(api))["facts"].count("\n") == 1
    for chat_id in ("other-user", "other-character", "no-user", "two"):
        assert await shown(api, chat_id=chat_id) == await texts(api, under=f"/v1/chats/{chat_id}") == {}
    assert await shown(api, chat_id="two", character="Kai") == {"facts": "- Kai."}
    assert await texts(api, under="/v1/chats/two", character="Ines") == {}
    await write(api, "Mira.", under=USER, importance=0.9)
    assert await shown(api, chat_id="other-character") == {"facts": "- Mira."}
    for chat_id in ("other-user", "no-user"):
        assert await shown(api, chat_id=chat_id) == {}


@pytest.mark.parametrize("off", [{"from_memories": False}, {"enabled": False}])
async def test_a_setting_disables_the_facts_block(api: httpx.AsyncClient, off: dict[str, bool]) -> None:
    await begin(api, blocks=off)
    await write(api, FERRY, importance=0.8)
    await write(api, FERRY, importance=0.8, under=USER)
    assert await texts(api) == await shown(api) == {}
    await put_block(api, "Mira.", label="facts")
    assert await texts(api) == await shown(api) == {"facts": "Mira."}
    await begin(api, "d")
    assert await texts(api, under=USER) == await shown(api, chat_id="d") == FACTS


async def test_a_memory_of_high_importance_refreshes_the_block(
    api: httpx.AsyncClient, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    model.otherwise = learning.learns(
        {
            "ferryman": lambda n: learning.memory(FERRY, n, importance=0.8),
            "fog": lambda n: learning.memory("There was fog on Monday.", n, importance=0.4),
            "harbour": lambda n: learning.memory("Mira promised to return to the harbour in May.", n, importance=0.9),
        }
    )
    await learning.begin(api)
    await learning.turn(api, 1, "My brother Tomas is a ferryman.")
    await learning.learn_all(dispatcher, clock)
    assert await shown(api) == FACTS
    before = (await context(api))["prefix_hash"]
    await learning.turn(api, 2, "There was fog on Monday.")
    await learning.learn_all(dispatcher, clock)
    assert await learning.sentences(api) >= {"There was fog on Monday."}
    assert (await context(api))["prefix_hash"] == before
    await learning.turn(api, 3, "I promise: in May I return to the harbour.")
    await learning.learn_all(dispatcher, clock)
    others = "- There was fog on Monday.\n- Mira promised to return to the harbour in May."
    assert await shown(api) == {"facts": f"- {FERRY}\n{others}"}
    assert (await context(api))["prefix_hash"] != before
    await edit(api, "m1", content="I have no brother.")
    assert await shown(api) == {"facts": others}
    assert "harbour" in await call(
        api, "memory_block_update", {"block": "facts", "operation": "append", "content": "It is cold."}
    )
