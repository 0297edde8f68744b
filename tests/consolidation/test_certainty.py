"""Which quoted sentences are certain enough for the block `facts`."""

import pytest

from app.consolidation.certainty import is_certain
from app.consolidation.extractive import learn
from app.kit.tokens import count_tokens
from app.knowledge.important import LEAST_IMPORTANCE
from app.summarising.extractive import Frequencies
from app.summarising.sentences import Kind
from app.summarising.transcript import Utterance

CERTAIN = [
    "My name is Mira.",
    "I'm allergic to shellfish.",
    "I'm a retired lighthouse keeper from Sandoy.",
    "I was born in Porto in 1994.",
    "I work as a nurse in Porto.",
    "I'm a huge fan of Lord of the Rings!",
    "I love listening to Nils Frahm during my practice.",
    "I can't stand being called kiddo.",
    "My favourite colour is green.",
    "Chicken pot pie is one of my favorites.",
    "I promise to repay the 400 crowns by 9 August.",
    "Ich heiße Lena und wohne in Köln.",
    "Me llamo Ana.",
    "Je suis née à Lyon.",
    "私は大阪で看護師として働いています。",
    "我喜欢北京的冬天。",
    "大家好，我叫王小明。",
    "私の名前はミラです。",
]
UNCERTAIN = [
    "Last Friday I went to a council meeting for adoption.",
    "I bought it a year ago in Paris.",
    "I'm a bit nervous about Monday.",
    "I love it!",
    "I love how your pottery looks.",
    "I really love having them around.",
    "They built the props for the films, and I love their work.",
    "He promised me that he would come.",
    "No regrets, I promise.",
    "As I like to say, no club is better than Liverpool!",
    "Are you from Porto?",
    "I'm from Porto, and you?",
    "Yesterday I took my puppy to the clinic.",
    "我叫外卖了，你等一下。",
    "俺の名前は何だ。",
]
UNREAL = [
    "I dreamed that I promised to marry Tom in Lisbon.",
    "In my dream I promised to marry Tom in Lisbon.",
    "I had a dream last night. I promised to marry Tom in Lisbon.",
    "I promised to marry Tom in Lisbon. That was a lie.",
    "I lied when I said I work as a nurse in Lisbon.",
    "I told Anna a lie: I work as a nurse in Lisbon.",
    "Let's pretend: I work as a nurse in Lisbon.",
    "In the game I work as a nurse in Lisbon.",
    "I wish I was born in Lisbon with Tom.",
    "If only, my dear Tom, I was born in Lisbon.",
    "Ich habe geträumt, ich wohne in Lissabon bei Tom.",
    "Ich wünschte, ich wohne in Lissabon bei Tom.",
    "Soñé que vivo en Lisboa con Tom.",
    "J'ai rêvé que j'habite à Lisbonne avec Tom.",
    "我梦见我住在北京和上海。",
]
REAL = [
    "I work as a nurse in Lisbon, and it is my dream job.",
    "I always dreamed of it, and now I work as a nurse in Lisbon.",
    "I wish you a good day, Tom. I work as a nurse in Lisbon.",
    "I wish I had a dog. I work as a nurse in Lisbon.",
    "I promise to meet Tom in Lisbon, and I never lied.",
    "I hate liars like Tom, and I work as a nurse in Lisbon.",
    "I work as a nurse in Lisbon, and a story by Tom is in my bag.",
]


@pytest.mark.parametrize("said", CERTAIN)
def test_identity_preference_and_promise_are_certain(said: str) -> None:
    assert is_certain(said, Kind.STATEMENT)
    assert not is_certain(said, Kind.ACTION)


@pytest.mark.parametrize("said", UNCERTAIN)
def test_events_questions_and_vague_phrases_are_not_certain(said: str) -> None:
    assert not is_certain(said, Kind.STATEMENT)


@pytest.mark.parametrize(
    ("role", "said", "is_important"),
    [
        ("user", "Last Friday I told Anna Kovacs in Lisbon about my job at the Harbour Office.", False),
        ("user", "I work as a nurse at the Harbour Office in Lisbon.", True),
        ("assistant", "I promise you that I will meet Anna Kovacs in Lisbon on 9 August.", True),
        ("narrator", "I promise you that I will meet Anna Kovacs in Lisbon on 9 August.", False),
        ("user", "I live in Lisbon now.", True),
    ],
)
def test_only_certain_sentences_reach_the_block(role: str, said: str, is_important: bool) -> None:
    batch = [Utterance(1, role, "Mira", said), Utterance(2, "user", "Mira", "We met Anna in Lisbon.")]
    found = learn(batch, Frequencies.of(batch), count_tokens=count_tokens)
    (memory,) = [one for one in found if one.sources == (1,)]
    assert memory.importance > 0.6
    assert (memory.importance >= LEAST_IMPORTANCE) == is_important


def importances(text: str, given: dict[int, float] | None = None) -> list[float]:
    batch = [Utterance(1, "user", "Mira", text), Utterance(2, "user", "Mira", "We met Anna in Lisbon.")]
    found = learn(batch, Frequencies.of(batch), given=given, count_tokens=count_tokens)
    return [one.importance for one in found if one.sources == (1,) and one.kind == "memory"]


@pytest.mark.parametrize("text", UNREAL)
def test_dreams_lies_and_wishes_do_not_reach_the_block(text: str) -> None:
    assert all(importance < LEAST_IMPORTANCE for importance in importances(text))


@pytest.mark.parametrize("text", REAL)
def test_dreams_and_wishes_nearby_do_not_matter(text: str) -> None:
    assert max(importances(text)) >= LEAST_IMPORTANCE


def test_the_caller_decides_about_a_dream() -> None:
    assert importances(UNREAL[0], {1: 0.9}) == [0.9]


def test_an_importance_by_the_caller_stays() -> None:
    batch = [Utterance(1, "user", "Mira", "Last Friday I told Anna Kovacs in Lisbon about the lamp.")]
    (memory,) = learn(batch, Frequencies.of(batch), given={1: 0.9}, count_tokens=count_tokens)
    assert memory.importance == 0.9
