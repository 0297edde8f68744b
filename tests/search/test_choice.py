"""Choosing search results within a budget."""

from hypothesis import given
from hypothesis import strategies as st

from app.kit.tokens import count_tokens
from app.passages.words import find_terms, split_words
from app.search.choice import (
    HEADING,
    LEAST_MEANING,
    LEAST_RELATEDNESS,
    LEAST_SCORE,
    MAX_MISFITS,
    Hit,
    choose,
    is_same,
    word,
)
from app.search.ranking import Candidate, rank

WORDS = ["key", "lamp", "lantern", "sea", "日本の", "Kai:", "\n"]
contents = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)


def hit(source: str, text: str, seq: int = 0, category: str | None = None) -> Hit:
    return Hit(source, text, category, seq, seq, 1.0, {"text": 1.0})


def bounded(text: str) -> str:
    """The words of a text, each between spaces."""
    return f" {' '.join(split_words(text))} "


@st.composite
def results(draw: st.DrawFn) -> list[Hit]:
    found = draw(st.lists(contents, max_size=8))
    kinds = st.sampled_from(["memory", "message"])
    return [hit(f"{draw(kinds)}:{at}", text, draw(st.integers(0, 9))) for at, text in enumerate(found)]


@given(results(), st.integers(1, 120), st.frozensets(st.integers(0, 8)), st.lists(contents, max_size=3))
def test_chosen_results_fit_and_repeat_nothing_shown(
    hits: list[Hit], limit: int, out: frozenset[int], shown: list[str]
) -> None:
    left_out = {one.source for at, one in enumerate(hits) if at in out}
    chosen = choose(hits, left_out=left_out, shown=shown, limit_tokens=limit, count=count_tokens)
    assert not chosen or count_tokens(word(chosen)) <= limit
    assert [one.last_seq for one in chosen] == sorted(one.last_seq for one in chosen)
    assert not {one.source for one in chosen} & left_out
    tired = [one for one in hits if one.source in left_out]
    known = [bounded(text) for text in [*shown, *(one.text for one in tired)]]
    words = [bounded(one.text) for one in chosen]
    assert not any(one in text for one in words for text in known)
    assert len(set(words)) == len(words)
    assert not any(is_same(one, other) for one in chosen for other in [*chosen, *tired])


def test_of_many_long_results_few_are_counted() -> None:
    counted = []

    def count(text: str) -> int:
        counted.append(text)
        return count_tokens(text)

    hits = [hit(f"message:{n}", f"lantern {n} " * 200) for n in range(100)]
    assert choose(
        [*hits[: MAX_MISFITS - 1], hit("memory:1", "a key"), *hits[MAX_MISFITS:]],
        left_out=(),
        shown=(),
        limit_tokens=100,
        count=count,
    ) == [hit("memory:1", "a key")]
    assert len(counted) <= MAX_MISFITS + 2


@given(results(), st.integers(1, 120))
def test_results_are_left_out_only_if_too_long_or_repeated(hits: list[Hit], limit: int) -> None:
    chosen = choose(hits, left_out=(), shown=(), limit_tokens=limit, count=count_tokens)
    for at, one in enumerate(hits):
        if one in chosen:
            continue
        better = [other for other in hits[:at] if other in chosen]
        repeated = any(bounded(one.text) in bounded(other.text) or is_same(one, other) for other in better)
        needed = [count_tokens(other.line) + 1 for other in [*better, one]]
        assert repeated or count_tokens(HEADING) + 1 + sum(needed) > limit


def test_results_are_one_line_each_newest_last() -> None:
    hits = [
        hit("message:m9", "Kai: The lamp\nis out.", 9),
        hit("memory:1", "Mira has a brother.", 4, "personal"),
        hit("memory:2", "Mira fears fire.", 0),
    ]
    chosen = choose(hits, left_out=(), shown=(), limit_tokens=200, count=count_tokens)
    assert word(chosen).splitlines() == [
        HEADING,
        "",
        "- [memory] Mira fears fire.",
        "- [personal] Mira has a brother.",
        "- [message] Kai: The lamp is out.",
    ]
    assert [(one.kind, one.id) for one in chosen] == [("memory", "2"), ("memory", "1"), ("message", "m9")]


def test_a_result_far_below_the_best_is_left_out() -> None:
    query = "Where did Mira hide the brass key of the lantern room?"
    texts = [
        "Mira hid the brass key of the lantern room under the third stair.",
        "The lantern was lit.",
        *(f"Mira rows out to buoy {n}, mends a net, counts gulls and boats, and comes back late." for n in range(60)),
    ]
    candidates = [Candidate(f"message:m{at}", text) for at, text in enumerate(texts)]
    ranked = rank(find_terms(query), candidates, total=400)
    hits = [
        Hit(one.source, texts[int(one.source.removeprefix("message:m"))], None, 0, 0, one.score, one.parts)
        for one in ranked
    ]
    assert len(hits) == len(texts)
    chosen = choose(hits, left_out=(), shown=(), limit_tokens=500, count=count_tokens)
    assert {one.id for one in chosen} == {"m0", "m1"}
    paused = choose(hits, left_out={"message:m0"}, shown=(), limit_tokens=500, count=count_tokens)
    assert [one.id for one in paused] == ["m1"], "the best one is the measure even while it pauses"


def test_a_weak_result_has_a_share_of_the_best_score() -> None:
    scores = [1.0, LEAST_SCORE, LEAST_SCORE - 0.01]
    hits = [Hit(f"memory:{at}", f"lamp {at}", None, 0, 0, one, {"text": one}) for at, one in enumerate(scores)]
    chosen = choose(hits, left_out=(), shown=(), limit_tokens=500, count=count_tokens)
    assert {one.id for one in chosen} == {"0", "1"}


def test_a_long_result_leaves_room_for_a_short_one() -> None:
    hits = [hit("memory:1", "lamp " * 300), hit("memory:2", "The key is brass.")]
    assert [one.id for one in choose(hits, left_out=(), shown=(), limit_tokens=60, count=count_tokens)] == ["2"]


def test_a_word_within_another_is_not_shown_already() -> None:
    found = choose([hit("memory:1", "art")], left_out=(), shown=["A party."], limit_tokens=99, count=count_tokens)
    assert len(found) == 1


sentences = st.lists(st.sampled_from(["I have a sister, Lena.", "The key is brass.", "海の灯り。", "Go!"]), min_size=1)


@given(sentences, st.data(), st.integers(1, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_memory_is_the_same_as_the_messages_that_it_quotes(
    said: list[str], data: st.DataObject, seq: int, first: int, further: int
) -> None:
    quoted = data.draw(st.sampled_from(said))
    memory = Hit("memory:1", f"Mira: “{quoted}”", None, first, first + further, 1.0, {})
    spoken = hit("message:m1", f"Mira: {' '.join(said)}", seq)
    assert is_same(memory, spoken) is is_same(spoken, memory) is (first <= seq <= first + further)
    assert not is_same(memory, spoken._replace(text="Mira: Something else."))
    assert not is_same(memory, spoken._replace(source="diary:1")), "only a message is quoted"
    assert not is_same(memory, memory)


def test_a_memory_and_the_message_it_quotes_count_as_one() -> None:
    memory = hit("memory:1", "Mira: “Lena mends boats.”", 3)
    spoken = hit("message:m3", "Mira: My sister? Lena mends boats. In Hamburg.", 3)
    later = hit("message:m9", "Mira: Yes. Lena mends boats. Still.", 9)

    def of(*hits: Hit, left_out: tuple[Hit, ...] = ()) -> list[Hit]:
        sources = {one.source for one in left_out}
        return choose(hits, left_out=sources, shown=(), limit_tokens=99, count=count_tokens)

    assert of(memory, spoken) == [memory]
    assert of(spoken, memory) == [spoken]
    assert of(memory, spoken, left_out=(memory,)) == of(spoken, memory, left_out=(spoken,)) == []
    assert of(memory, spoken, later) == [memory, later], "it was said again"


def test_an_unrelated_memory_is_not_recalled() -> None:
    def found(source: str, text: float, vector: float, relatedness: float | None = None) -> Hit:
        parts = {"text": text, "vector": vector}
        return Hit(source, f"lamp {source}", None, 0, 0, text + vector, parts, relatedness)

    hits = [
        found("message:1", 0.0, 0.2),
        found("memory:near", 0.0, LEAST_MEANING),
        found("memory:far", 0.0, LEAST_MEANING - 0.01),
        found("memory:word", 0.1, 0.1, LEAST_RELATEDNESS - 0.01),
        found("memory:similar", 0.0, LEAST_MEANING, LEAST_RELATEDNESS),
        found("memory:nearest", 0.0, 0.5, LEAST_RELATEDNESS - 0.01),
    ]
    chosen = choose(hits, left_out=(), shown=(), limit_tokens=500, count=count_tokens)
    assert {one.id for one in chosen} == {"1", "near", "word", "similar"}
