"""Ranking of search results, against a slow reference."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.passages.words import split_words
from app.search.ranking import (
    BARE_SIMILARITY,
    IMPORTANCE_BONUS,
    LEAST_SIMILARITY,
    MEANT_SIMILARITY,
    RECENCY_BONUS,
    VECTOR_SHARE,
    Candidate,
    SimilarTerms,
    find_similarities,
    find_unmatched,
    rank,
    similarity,
    weigh_strength,
)
from app.search.stems import stemmer_of

WORDS = ["key", "lamp", "lantern", "lanterns", "lantren", "brother", "brothers", "sea", "日本", "語の"]

IMPORTANCE = st.sampled_from([None, 0.0, 0.5, 1.0])
RECENCY = st.sampled_from([0.0, 0.3, 1.0])

words = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


@st.composite
def searches(draw: st.DrawFn) -> tuple[list[str], list[Candidate]]:
    terms = draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=4))
    candidates = [
        Candidate(
            f"memory:{at}", text, draw(st.sampled_from([None, 0.0, 0.5, 1.0])), draw(st.integers(0, 50)), draw(RECENCY)
        )
        if draw(st.booleans())
        else Candidate(f"message:{at}", text, None, at + 1, draw(RECENCY), draw(st.sampled_from("ab")))
        for at, text in enumerate(draw(st.lists(words, max_size=6)))
    ]
    return terms, candidates


def trigrams(word: str) -> set[str]:
    padded = f"  {word} "
    return {padded[at : at + 3] for at in range(len(word) + 1)}


def likeness(term: str, word: str) -> float:
    mine, others = trigrams(term), trigrams(word)
    return len(mine & others) / len(mine | others)


def score_slowly(terms: list[str], candidates: list[Candidate], total: int) -> dict[str, float]:
    """The score of each candidate that answers, computed term by term."""
    texts = [Counter(split_words(one.text)) for one in candidates]

    def count(term: str, text: Counter[str]) -> float:
        if term in text:
            return text[term]
        near = [(likeness(term, word), times) for word, times in text.items() if min(len(word), len(term)) >= 5]
        return max((like * times for like, times in near if like >= LEAST_SIMILARITY), default=0.0)

    mean = sum(text.total() for text in texts) / max(len(texts), 1)
    repeated = sum(times - 1 for text in texts for times in text.values())
    discount = (repeated / max(sum(text.total() for text in texts), 1)) ** 0.5
    raw = []
    for text in texts:
        value = 0.0
        for term in terms:
            times = count(term, text)
            found = sum(1 for other in texts if count(term, other) > 0)
            if times:
                rarity = math.log(1 + (total - found + 0.5) / (found + 0.5))
                value += rarity * times / (times + 1.2 * (1 - discount + discount * text.total() / mean))
        raw.append(value)
    best = max(raw, default=0.0)
    by_place = {(one.spoken_in, one.last_seq): value for one, value in zip(candidates, raw, strict=True)}

    def beside(one: Candidate) -> float:
        if one.spoken_in is None:
            return 0.0
        return max(by_place.get((one.spoken_in, one.last_seq + step), 0.0) for step in (-1, 1)) / best

    return {
        one.source: value / best + 0.25 * beside(one) + 0.05 * (one.importance or 0) + 0.03 * one.recency
        for one, value in zip(candidates, raw, strict=True)
        if value > 0
    }


@given(searches(), st.integers(0, 20))
def test_scores_are_those_of_the_reference(search: tuple[list[str], list[Candidate]], others: int) -> None:
    terms, candidates = search
    ranked = rank(terms, candidates, total=len(candidates) + others)
    slow = score_slowly(terms, candidates, len(candidates) + others)
    assert {one.source: pytest.approx(one.score) for one in ranked} == slow
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
    for one in ranked:
        assert one.score == sum(one.parts.values())
        assert 0 < one.parts["text"] <= 1 + 1e-9
        assert (one.parts["importance"], one.parts["recency"]) <= (IMPORTANCE_BONUS, RECENCY_BONUS + 1)


@given(searches())
def test_the_order_of_the_candidates_does_not_matter(search: tuple[list[str], list[Candidate]]) -> None:
    terms, candidates = search
    one = rank(terms, candidates, total=50)
    assert rank(terms, candidates[::-1], total=50) == one


@given(st.sampled_from(WORDS), st.sampled_from(WORDS))
def test_similarity_is_the_share_of_trigrams(one: str, other: str) -> None:
    assert similarity(one, other) == pytest.approx(likeness(one, other))


def order(terms: list[str], *texts: Candidate | str, total: int = 100) -> list[str]:
    candidates = [Candidate(one, one) if isinstance(one, str) else one for one in texts]
    return [one.source for one in rank(terms, candidates, total=total)]


def test_one_term_of_several_is_enough() -> None:
    assert order(["tomas", "ferry", "lantern"], "the lantern fell", "nothing") == ["the lantern fell"]


def test_a_rare_term_counts_more_than_a_frequent_one() -> None:
    common = [f"lamp number {n}" for n in range(20)]
    assert order(["lamp", "ferry"], *common, "the ferry left")[0] == "the ferry left"


def test_long_texts_that_repeat_no_word_lose_nothing() -> None:
    short, long = "the ferry left", "ferry timetables change whenever winter storms close our little harbour again"
    ranked = rank(["ferry"], [Candidate(short, short), Candidate(long, long)], total=100)
    assert [one.parts["text"] for one in ranked] == [1, 1]


def test_long_texts_are_discounted_where_texts_repeat_words() -> None:
    short, long = "the ferry left", "the ferry and the harbour and the storm and the winter"
    ranked = rank(["ferry"], [Candidate(long, long), Candidate(short, short)], total=100)
    assert [one.source for one in ranked] == [short, long]
    assert ranked[1].parts["text"] < 0.8


def test_typos_and_inflected_words_are_found() -> None:
    assert order(["lanterns"], "the lantern fell", "the lamp fell") == ["the lantern fell"]
    assert order(["brothr"], "her brother", "her mother") == ["her brother"]


def test_a_message_gains_from_the_one_beside_it() -> None:
    spoken = [
        Candidate(text, text, None, seq, spoken_in="c")
        for seq, text in [(1, "my lamp broke"), (5, "did the ferry with the lamp come"), (6, "the lamp, yes")]
    ]
    assert order(["lamp", "ferry"], *spoken)[1] == "the lamp, yes"


def test_forms_of_a_word_are_one_by_their_stem() -> None:
    texts = [Candidate("a", "she ran and ran"), Candidate("b", "they run")]
    ranked = rank(["runs"], texts, total=100, stem=lambda word: word.removesuffix("s"))
    assert [one.source for one in ranked] == ["b"]


def test_a_weak_memory_loses_a_part_of_its_whole_score() -> None:
    strong, weak = Candidate("strong", "the ferry", 0.5), Candidate("weak", "the ferry", 0.5, weight=0.25)
    first, second = rank(["ferry"], [weak, strong], total=100)
    assert (first.source, second.source) == ("strong", "weak")
    assert second.score == pytest.approx(first.score / 4)
    assert second.parts == {**first.parts, "fading": pytest.approx(-0.75 * first.score)}
    assert [weigh_strength(one) for one in (0.0, 0.25, 0.5, 1.0)] == [0.0, 0.5, 1.0, 1.0]


def test_importance_and_recency_decide_only_between_equals() -> None:
    old = Candidate("old", "the ferry", 0.0, 1)
    assert order(["ferry"], old, Candidate("new", "the ferry", 0.0, 90, 0.9)) == ["new", "old"]
    assert order(["ferry"], old, Candidate("dear", "the ferry", 1.0, 1)) == ["dear", "old"]
    better = Candidate("better", "the ferry and the lantern", 0.0, 1)
    assert order(["ferry", "lantern"], better, Candidate("dear", "the ferry is here now", 1.0, 99, 0.99))[0] == "better"


def spoken(n: int, text: str, similarity: float | None) -> Candidate:
    return Candidate(f"message:m{n}", text, last_seq=10 * n, spoken_in="line", similarity=similarity)


SIMILARITIES = st.lists(st.one_of(st.none(), st.floats(-1, 1)), min_size=1, max_size=8)


@given(SIMILARITIES, st.floats(-1, 1))
def test_the_nearest_message_gets_half_for_its_meaning(similarities: list[float | None], lowest: float) -> None:
    candidates = [spoken(n, "We sail on.", similarity) for n, similarity in enumerate(similarities, start=1)]
    ranked = {one.source: one.parts for one in rank(["lamp"], candidates, total=8, lowest=lowest)}
    known = [one for one in similarities if one is not None]
    assert len(ranked) == len(known), "a text without a vector and without a word is no result"
    for one in candidates:
        if one.similarity is None:
            continue
        vector = ranked[one.source]["vector"]
        assert 0 <= vector <= VECTOR_SHARE
        if one.similarity == max(known):
            assert vector == VECTOR_SHARE
        less = [other for other in candidates if other.similarity is not None and other.similarity < one.similarity]
        assert all(vector >= ranked[other.source]["vector"] for other in less)


def test_words_and_meaning_are_worth_the_same() -> None:
    both, words, meaning = spoken(1, "A lamp.", 0.9), spoken(2, "A lamp.", 0.1), spoken(3, "A light.", 0.9)
    memory = Candidate("memory:1", "A lamp.")
    ranked = {one.source: one.parts for one in rank(["lamp"], [both, words, meaning, memory], total=9, lowest=0.1)}
    assert ranked[both.source]["text"] == ranked[both.source]["vector"] == VECTOR_SHARE
    assert (ranked[words.source]["text"], ranked[words.source]["vector"]) == (VECTOR_SHARE, 0)
    assert (ranked[meaning.source]["text"], ranked[meaning.source]["vector"]) == (0, VECTOR_SHARE)
    assert (ranked["memory:1"]["text"], ranked["memory:1"]["vector"]) == (1, 0), "it has no vector"


def test_a_memory_counts_by_its_meaning_too() -> None:
    memory, other = Candidate("memory:1", "Light.", similarity=0.9), spoken(1, "A lamp.", 0.1)
    ranked = {one.source: one.parts for one in rank(["lamp"], [memory, other], total=9, lowest=0.1)}
    assert (ranked["memory:1"]["text"], ranked["memory:1"]["vector"]) == (0, VECTOR_SHARE)
    assert ranked[other.source]["vector"] == 0


def test_a_message_without_a_vector_yet_counts_by_its_words() -> None:
    fresh, noise = spoken(1, "The wifi code is Borealis.", None), spoken(3, "Our dog chewed my shoes.", 0.2)
    ranked = rank(["borealis", "code"], [noise, fresh], total=9, lowest=0.1)
    assert ranked[0].source == fresh.source
    assert ranked[0].parts["text"] == 1
    assert ranked[1].parts["vector"] == VECTOR_SHARE, "the nearest message, however far it is"


def test_one_word_of_many_does_not_outdo_the_meaning() -> None:
    meaning, weak = spoken(1, "You never had wet feet.", 0.9), Candidate("memory:1", "I feel a stone lighter.")
    terms = ["feel", "ocean", "first"]
    ranked = {one.source: one.parts for one in rank(terms, [meaning, weak, spoken(9, "Fog.", 0.1)], total=9)}
    assert ranked["memory:1"]["text"] == pytest.approx(VECTOR_SHARE, abs=0.2)
    (alone,) = rank(terms, [weak], total=9)
    assert alone.parts["text"] == 1


def test_without_vectors_words_count_in_full() -> None:
    (one,) = rank(["lamp"], [spoken(1, "A lamp.", None)], total=9)
    assert one.parts["text"] == 1
    assert "vector" not in one.parts


def test_the_similarity_of_a_long_text_is_that_of_its_best_part() -> None:
    found = [("message:a", 0.2), ("message:a", 0.7), ("message:b", None), ("message:a", None)]
    assert find_similarities(found) == {"message:a": 0.7}


def test_a_word_that_is_meant_counts_less_than_the_word() -> None:
    texts = [Candidate("message:1", "The ferry left."), Candidate("message:2", "The lamp burns.")]
    terms = ["fery", "lamp"]
    assert [one.source for one in rank(terms, texts, total=2)] == ["message:2"]
    ranked = rank(terms, texts, total=2, meant={"fery": "ferry"})
    assert [one.source for one in ranked] == ["message:2", "message:1"]
    room = 1.2
    share = MEANT_SIMILARITY / (MEANT_SIMILARITY + room) * (1 + room)
    assert ranked[1].text == pytest.approx(share)


@pytest.mark.parametrize("language", [None, "es", "fr", "pt"])
def test_a_word_that_is_meant_counts_with_other_accents(language: str | None) -> None:
    texts = ["María salió.", "Maria salió.", "Nada más."]
    stem, candidates = stemmer_of(language), [Candidate(f"message:{n}", text) for n, text in enumerate(texts)]
    for meant in ("maria", "maría"):
        ranked = rank(["maroa"], candidates, total=3, stem=stem, meant={"maroa": meant})
        assert {one.source for one in ranked} == {"message:0", "message:1"}


def test_words_of_other_scripts_are_not_compared() -> None:
    similar = SimilarTerms(["lantern", "поле"])
    assert similar.find_near(["日本", "고양", "の猫", "мир", "été"]) == {}
    assert list(similar) == []
    assert similar.find_near(["полё", "łantern"]) == {
        "поле": [("полё", BARE_SIMILARITY)],
        "lantern": [("łantern", BARE_SIMILARITY)],
    }


def test_a_word_that_is_meant_is_found_by_its_stem() -> None:
    (found,) = rank(["feries"], [Candidate("message:1", "Two lamps.")], total=1, stem=shorten, meant={"feries": "lamp"})
    assert found.source == "message:1"


def test_terms_without_a_word_or_a_similar_one_are_unmatched() -> None:
    texts = ["Two lanterns.", "Lamps burn."]
    assert find_unmatched(["lantern", "lamp", "key"], texts) == ["lamp", "key"]
    assert find_unmatched(["lantern", "lamp", "key"], texts, stem=shorten) == ["key"]
    assert find_unmatched(["key"], []) == ["key"]
    assert find_unmatched(["theif"], ["It is their lantern."]) == ["theif"]
    assert find_unmatched(["theif"], ["It is their lantern."], language="de") == [], "it is no frequent word there"
    assert find_unmatched(["theif"], ["It is their lantern.", "A thief."]) == ["theif"]


def shorten(word: str) -> str:
    """A stemmer that knows the plural."""
    return word.removesuffix("s")
