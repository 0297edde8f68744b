"""The texts that recall remembers, and how they are found by their words."""

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.layers.documents import Document
from app.layers.recently_used import age_all
from app.passages.lookup import digest_text
from app.passages.words import split_words
from app.search.known import MAX_AGE, KnownTexts, Viewed, find_remembered, remember_texts
from app.search.ranking import LEAST_SIMILARITY, similarity
from tests.facts.asking import USER
from tests.memories.asking import write
from tests.search.finding import begin_long, message
from tests.talk import append, context, put

WORDS = ["lantern", "lanterns", "lanern", "harbour", "pier", "Bo", "Tee", "灯台", "灯", "Ｌａｎｔｅｒｎ", "naïve"]
VIEWED = Viewed(UUID(int=1), "Kai", (1, 2))


def make(*texts: str) -> KnownTexts:
    return KnownTexts.of(Document(f"memory:{number}", text, 0, 0) for number, text in enumerate(texts))


def sources(places: Iterable[int]) -> list[str]:
    return [f"memory:{place}" for place in places]


def has(text: str, term: str) -> bool:
    """Whether a text has a term or a similar word, looked up word by word."""
    return any(
        word == term or (min(len(word), len(term)) >= 5 and similarity(term, word) >= LEAST_SIMILARITY)
        for word in split_words(text)
        if word == term or word[:3] in (term[:3], term[-3:]) or word[-3:] in (term[:3], term[-3:])
    )


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), max_size=8),
    terms=st.lists(st.sampled_from(["lantern", "harbor", "pier", "灯台", "灯", "bo"]), unique=True, max_size=4),
)
def test_all_texts_with_a_similar_word_are_found(texts: list[str], terms: list[str]) -> None:
    expected = {f"memory:{n}" for n, text in enumerate(texts) if any(has(text, term) for term in terms)}
    assert set(sources(make(*texts).find_likely(terms, 100))) == expected


def test_the_rarest_words_decide() -> None:
    known = make("a lamp", "a lamp", "a lamp and a key", "a key", "a boat")
    assert sources(known.find_likely(["lamp", "key"], 2)) == ["memory:2", "memory:3"]
    assert sources(known.find_likely(["lamp"], 1, left_out=frozenset(["memory:2"]))) == ["memory:1"]


def test_the_nearest_texts_are_found() -> None:
    known = make("a lamp", "a boat", "a key")
    near = {digest_text("a key"): 0.9, digest_text("a lamp"): 0.5, digest_text("an oar"): 0.7}
    assert sources(known.find_near(near, 5)) == ["memory:2", "memory:0"]
    assert sources(known.find_near(near, 1, left_out=frozenset(["memory:2"]))) == ["memory:0"]
    assert known.find_near({}, 5) == []


@pytest.mark.parametrize("moved", [0, MAX_AGE.total_seconds() + 1, -MAX_AGE.total_seconds() - 1])
def test_texts_are_remembered_for_an_hour(clock: SteppedClock, moved: float) -> None:
    now = clock()
    made = remember_texts(VIEWED, [Document("memory:1", "a lamp", 0, 0)._asdict()], now)
    found = find_remembered(VIEWED, now + timedelta(seconds=moved))
    assert found is (None if moved else made)
    assert find_remembered(VIEWED._replace(tag=(1, 3)), now) is None
    assert find_remembered(VIEWED._replace(character=None), now) is None
    age_all()
    age_all()
    assert find_remembered(VIEWED, now) is None


async def test_a_context_does_not_read_memories_again(api: httpx.AsyncClient, database: Database) -> None:
    await begin_long(api)
    await write(api, "Green glass calms Mira.")
    await append(api, [message(7, "Do you see the green lantern?")])
    first = await context(api)
    assert sorted(one["kind"] for one in first["recalled"]) == ["memory", "message"]
    async with database.raw() as connection:  # behind the service's back
        await connection.execute("UPDATE statements SET content = 'A boat calms Mira.'")
    assert (await context(api))["recalled"] == first["recalled"]
    age_all()
    age_all()
    assert [one["kind"] for one in (await context(api))["recalled"]] == ["message"]


async def test_another_chat_of_the_user_changes_memories(api: httpx.AsyncClient) -> None:
    await begin_long(api)
    await put(api, status=200, user_id=USER)
    await append(api, [message(7, "Do you see the green lantern?")])
    assert [one["kind"] for one in (await context(api))["recalled"]] == ["message"]
    await write(api, "Green glass calms Mira.", under=f"/v1/users/{USER}")
    assert sorted(one["kind"] for one in (await context(api))["recalled"]) == ["memory", "message"]
