"""A message that tells a story gives memories, but nothing that every prompt shows as certain."""

import httpx
import pytest

from app.consolidation.certainty import tells_story
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.consolidation.learning import facts, learn_all, memories
from tests.talk import append, get, put, said

BORN = "My name is Alaric, and I was born in Castle Black in 1287."
KNIGHT = "I am a knight of the Raven Queen, and I swear to serve you."
STORIES = [
    f'"{BORN}" the knight says.',
    f'"{BORN}" The knight bows to the Raven Queen.',
    f'The knight of Castle Black looked up. "{BORN}"',
    f"*bows* {KNIGHT}",
    f"{KNIGHT} *bows deeply*",
    f"{KNIGHT}\n*The Raven Queen nods.*",
    f"„Wer ist da?“, fragt die Königin. {KNIGHT}",
    f"「私の名前はアラリックです」と騎士は言った。\n{KNIGHT}",
]
PLAIN = [
    KNIGHT,
    BORN,
    f'"{BORN}"',
    'My favourite book is "The Left Hand of Darkness", and I work as a nurse in Porto.',
    "My favourite film is *Lost in Translation*",
    "I *really* love the harbour of Porto, and I work there as a nurse.",
    "I'm 6'2\" and I work as a nurse in Porto.",
    'I work as a nurse in Porto, so "holiday" means little to me.',
]


@pytest.mark.parametrize("text", STORIES)
def test_speech_with_narration_and_actions_is_a_story(text: str) -> None:
    assert tells_story(text)


@pytest.mark.parametrize("text", PLAIN)
def test_titles_emphasis_and_bare_speech_are_not_a_story(text: str) -> None:
    assert not tells_story(text)


async def block(api: httpx.AsyncClient) -> str:
    """The block `facts` of the context."""
    segments = (await get(api, "/context"))["segments"]
    return "\n".join(one["text"] for one in segments if one["name"] == "blocks")


@pytest.mark.parametrize("text", STORIES)
async def test_fiction_is_remembered_but_not_certain(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock, text: str
) -> None:
    await put(api, user_name="Ann", characters=[{"name": "Kai"}], settings={"preset": "agent"})
    await append(api, [said(1, content=text), said(2, content="Hm.")])
    await learn_all(quoting_dispatcher, clock)
    learnt = await memories(api)
    assert learnt
    assert all(one["importance"] < 0.7 for one in learnt)
    assert await block(api) == ""
    assert await facts(api) == {}


async def test_the_same_words_without_a_story_are_certain(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, user_name="Ann", characters=[{"name": "Kai"}], settings={"preset": "agent"})
    await append(api, [said(1, content=KNIGHT), said(2, content="Hm.")])
    await learn_all(quoting_dispatcher, clock)
    assert KNIGHT in await block(api)
