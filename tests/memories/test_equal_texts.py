"""A text that several scopes have as a memory is shown to the model once."""

from typing import NamedTuple

import httpx
import pytest

from app.knowledge.important import MOST, Important, choose_important
from app.knowledge.known import drop_repeated
from tests.facts.asking import USER, begin
from tests.memories.asking import Learner, change, delete, memories, write
from tests.search.finding import find
from tests.talk import append, get, talk


class Text(NamedTuple):
    rank: int
    content: str


BORN = "Mira was born on the island of Bornholm in 1991."


async def learn_in_all_scopes(api: httpx.AsyncClient, learn: Learner, wide: str = BORN) -> dict[str, str]:
    """Chats of the user learn a memory in three scopes, the chat `c` in its own. Return the ids by scope."""
    ids = {}
    for scope, chat_id in (("user", "p1"), ("chat", "c"), ("character", "p3")):
        history = {"keep_messages": 2, "grow_messages": 0, "edges": "every_message"}
        more = {"memos": {"enabled": False}, "history": history}
        await begin(api, chat_id, memories={"learn_scope": scope}, recall={"mode": "auto"}, **more)
        await append(api, talk(1, 6), chat_id)
        learnt = await learn(BORN if scope == "chat" else wide, "m1", chat_id=chat_id)
        assert learnt.outcome == "new"
        ids[scope] = str(learnt.memory_id)
    return ids


async def found(api: httpx.AsyncClient, query: str = "Bornholm", **more: int) -> list[str]:
    """The ids of the memories that the tool finds in `c`."""
    lines = (await find(api, query, **more)).splitlines()[1:]
    return [line.partition("(memory ")[2].partition(";")[0].rstrip(")") for line in lines]


async def recalled(api: httpx.AsyncClient, query: str) -> list[str]:
    """The ids of the texts that a context of `c` recalls."""
    return [one["id"] for one in (await get(api, "/context", query=query))["recalled"] or ()]


@pytest.mark.parametrize("wide", [BORN, f"  {BORN.upper()}".replace(" ", "\n"), BORN.replace("1991", "１９９１")])
async def test_the_model_finds_the_memory_of_the_nearest_scope(
    api: httpx.AsyncClient, learn: Learner, wide: str
) -> None:
    ids = await learn_in_all_scopes(api, learn, wide)
    assert await found(api) == [ids["chat"]]
    assert await recalled(api, "Bornholm") == [ids["chat"]]
    assert {one["id"] for one in await memories(api)} == set(ids.values())
    await change(api, ids["chat"], archived=True)
    assert await found(api) == [ids["character"]]
    (other,) = await recalled(api, "Bornholm")
    assert other in {ids["character"], ids["user"]}


async def test_forgetting_the_nearest_memory_hides_the_others(api: httpx.AsyncClient, learn: Learner) -> None:
    ids = await learn_in_all_scopes(api, learn)
    await delete(api, ids["chat"])
    assert await found(api) == []
    assert await memories(api) == []


async def test_the_nearest_memory_has_the_place_of_the_best_hit(api: httpx.AsyncClient) -> None:
    await begin(api, recall={"mode": "auto"})
    own = await write(api, BORN, importance=0.1)
    other = await write(api, BORN.replace("1991", "1992"), importance=0.5)
    await write(api, BORN, under=USER, importance=1.0)
    assert await found(api) == [own["id"], other["id"]]
    assert await found(api, limit=1) == [own["id"]]


async def test_other_texts_of_wider_scopes_are_found_beside_it(api: httpx.AsyncClient, learn: Learner) -> None:
    ids = await learn_in_all_scopes(api, learn, BORN.replace("1991", "1992"))
    assert set(await found(api)) == set(ids.values()) - {ids["user"]}
    written = await write(api, BORN.replace("1991", "1993"), under=USER)
    assert set(await found(api)) == {ids["chat"], ids["character"], str(written["id"])}


def test_each_text_is_kept_once_in_its_first_place() -> None:
    texts = [Text(3, "A lamp."), Text(0, "A boat."), Text(1, " a  LAMP."), Text(1, "A lamp."), Text(2, "A lamp.")]
    assert drop_repeated(texts) == [texts[2], texts[1]]
    assert drop_repeated(texts[:2]) == texts[:2]


async def test_the_block_has_the_text_of_several_scopes_once(api: httpx.AsyncClient) -> None:
    await begin(api)
    own = await write(api, BORN, importance=0.8)
    await write(api, BORN.upper(), under=USER, importance=0.9)
    await write(api, "Mira has two cats.", under=USER, importance=0.9)
    block = await get(api, "/blocks/facts")
    assert block["text"].splitlines() == [f"- {BORN}", "- Mira has two cats."]
    assert f"memory:{own['id']}" in block["sources"]


def test_a_text_keeps_the_highest_importance_of_its_copies() -> None:
    others = [Important(2, None, f"o{n}", f"s{n}", f"Mira has boat {n}.", 0.8, n) for n in range(MOST)]
    own = Important(0, None, "own", "t1", BORN, 0.1, 100)
    chosen = choose_important([*others, own, Important(2, None, "wide", "t2", BORN, 0.9, 101)], None)
    assert chosen == [own, *others[:0:-1]]
