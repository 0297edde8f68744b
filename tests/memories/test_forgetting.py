"""What a person forgets in a wide scope is not learnt again in a nearer one."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.consolidation.learning import begin as begin_learning
from tests.consolidation.learning import learn_all, learns, memory, sentences, turn
from tests.facts.asking import KAI, USER, begin, learn_wide
from tests.memories.asking import Learner, change, delete, known, listed, memories, write
from tests.memories.test_remember import THREE_CATS, TOMAS, TWO_CATS
from tests.scripted_model import ScriptedModel
from tests.talk import Json, append, cut_off, edit, put, talk

KAI_OF_MIRA = f"{USER}/characters/Kai"
FERRY = "Mira's brother Tomas works as a ferryman at the old harbour in Ghent."
NEW_FERRY = FERRY.replace("old", "new")
BICYCLE = "Mira once stole a bicycle in Ghent."
WIDE = {"character": KAI_OF_MIRA, "user": USER, "global": "/v1"}


async def learn_in(api: httpx.AsyncClient, scope: str, chat_id: str = "c") -> None:
    """Change the scope in which a chat learns."""
    await put(api, chat_id, settings={"memories": {"learn_scope": scope}}, status=200)


@pytest.mark.parametrize(
    ("wide", "near"),
    [
        ("character", "chat"),
        ("user", "chat"),
        ("user", "character"),
        ("global", "chat"),
        ("global", "character"),
        ("global", "user"),
    ],
)
async def test_a_memory_forgotten_in_a_wider_scope_is_not_relearnt(
    api: httpx.AsyncClient, learn: Learner, wide: str, near: str
) -> None:
    await learn_wide(api, scope=wide)
    await begin(api, "d")
    await append(api, talk(1, 4))
    await append(api, talk(1, 2), "d")
    found = await learn(TWO_CATS, "m2")
    await delete(api, found.memory_id, under=WIDE[wide])
    for chat_id in ("c", "d"):
        await learn_in(api, near, chat_id)
        assert (await learn(f"{TWO_CATS} ", "m1", chat_id=chat_id)).outcome == "forgotten"
        assert (await learn(THREE_CATS, "m1", chat_id=chat_id)).outcome == "forgotten"
        assert await known(api, chat_id) == set()
    assert (await learn(TOMAS, "m1")).outcome == "new"


async def test_without_its_text_the_hash_is_compared(api: httpx.AsyncClient, learn: Learner) -> None:
    await learn_wide(api)
    await append(api, talk(1, 2))
    found = await learn(TWO_CATS, "m2")
    await delete(api, found.memory_id, under=USER)
    await cut_off(api, 1)
    await append(api, talk(3, 4))
    await learn_in(api, "chat")
    assert (await learn(TWO_CATS.upper(), "m3")).outcome == "forgotten"


async def test_a_text_replaced_in_a_wider_scope_can_be_learnt(api: httpx.AsyncClient, learn: Learner) -> None:
    """A person corrected the user's memory; in the chat, the former text is said again."""
    await learn_wide(api)
    await append(api, talk(1, 4))
    found = await learn(TWO_CATS, "m2")
    await change(api, found.memory_id, under=USER, content=THREE_CATS)
    await learn_in(api, "chat")
    assert (await learn(TWO_CATS, "m3")).outcome == "new"
    assert await listed(api) == {TWO_CATS, THREE_CATS}


@pytest.mark.parametrize("near", ["chat", "character"])
async def test_a_correction_outlives_what_the_user_forgot(api: httpx.AsyncClient, learn: Learner, near: str) -> None:
    """A nearer scope has learnt the forgotten text for itself, and now learns another text of this memory."""
    await learn_wide(api, scope=near)
    await append(api, talk(1, 4))
    found = await learn(FERRY, "m1")
    written = await write(api, FERRY, under=USER)
    await delete(api, written["id"], under=USER)
    again = await learn(NEW_FERRY, "m3")
    assert (again.outcome, again.memory_id) == ("supersedes", found.memory_id)
    assert await listed(api) == {NEW_FERRY}


async def test_a_correction_outlives_what_the_user_replaced(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    found = await learn(FERRY, "m1")
    written = await write(api, FERRY, under=USER)
    await change(api, written["id"], under=USER, content=NEW_FERRY)
    again = await learn(NEW_FERRY, "m3")
    assert (again.outcome, again.memory_id) == ("supersedes", found.memory_id)
    assert sorted((one["scope"], one["content"]) for one in await memories(api)) == [
        ("chat", NEW_FERRY),
        ("user", NEW_FERRY),
    ]


async def test_a_correction_to_what_the_user_forgot_is_not_learnt(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api)
    await append(api, talk(1, 4))
    await learn(FERRY, "m1")
    written = await write(api, NEW_FERRY, under=USER)
    await delete(api, written["id"], under=USER)
    assert (await learn(NEW_FERRY, "m3")).outcome == "forgotten"
    assert await listed(api) == {FERRY}


async def test_what_one_chat_forgot_binds_no_other(api: httpx.AsyncClient, learn: Learner) -> None:
    await learn_wide(api)
    await begin(api, "d")
    for chat_id in ("c", "d"):
        await append(api, talk(1, 2), chat_id)
    found = await learn(TWO_CATS, "m1")
    await delete(api, found.memory_id)
    assert (await learn(TWO_CATS, "m1", chat_id="d")).outcome == "new"


@pytest.mark.parametrize(("user", "character"), [("ren", KAI), ("mira", {"name": "Rin"})])
async def test_scopes_that_a_chat_does_not_see_bind_it_not(
    api: httpx.AsyncClient, learn: Learner, user: str, character: Json
) -> None:
    await begin(api)
    await put(api, "d", user_id=user, characters=[character])
    await append(api, talk(1, 2), "d")
    written = await write(api, TWO_CATS, under=KAI_OF_MIRA)
    await delete(api, written["id"], under=KAI_OF_MIRA)
    assert (await learn(TWO_CATS, "m1", chat_id="d")).outcome == "new"


async def test_a_memory_of_the_chat_outlives_that_of_the_user(api: httpx.AsyncClient, learn: Learner) -> None:
    """The chat has learnt the sentence for itself; a person forgets the user's, and it is said again in the chat."""
    await begin(api)
    await append(api, talk(1, 4))
    found = await learn(TWO_CATS, "m1")
    written = await write(api, TWO_CATS, under=USER)
    await delete(api, written["id"], under=USER)
    again = await learn(TWO_CATS, "m3")
    assert (again.outcome, again.memory_id) == ("duplicate", found.memory_id)
    assert [one["content"] for one in await memories(api)] == [TWO_CATS]


async def test_an_edit_does_not_bring_back_what_the_user_forgot(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = learns({"bicycle": lambda n: memory(BICYCLE, n)})
    await begin_learning(api, memories={"learn_scope": "user"})
    await turn(api, 1, "I stole a bicycle in Ghent.", "You stole a bicicle?")
    await learn_all(dispatcher, clock)
    (learnt,) = await memories(api, under=USER)
    await delete(api, learnt["id"], under=USER)
    await learn_in(api, "chat")
    await edit(api, "m2", content="You stole a bicycle?")
    await learn_all(dispatcher, clock)
    assert len(model.requests) == 2
    assert await sentences(api) == set()
