"""When a look for a break starts, and which messages it offers: against slow references."""

from hypothesis import given
from hypothesis import strategies as st

from app.scenes.detection.looks import (
    CONTEXT_MESSAGES,
    CONTEXT_TOKENS,
    ENOUGH_AFTER_PAUSE,
    ENOUGH_MESSAGES,
    LEAST_CONTEXT,
    MOST_REJUDGED,
    choose_context,
    is_look_due,
    judged_after_change,
    plan_look,
)

RULES = st.fixed_dictionaries(
    {"min_messages": st.integers(1, 20), "max_messages": st.integers(10, 30), "offset": st.integers(0, 20)}
)


@given(seqs=st.sets(st.integers(1, 300), max_size=120).map(sorted), rules=RULES, lifted=st.sets(st.integers(1, 300)))
def test_looks_judge_each_message_once_from_the_oldest_on(
    seqs: list[int], rules: dict[str, int], lifted: set[int]
) -> None:
    judged: list[int] = []
    offered: list[int] = []
    while look := plan_look(judged, seqs[len(judged) :], before=len(judged), lifted=lifted, **rules):
        assert list(look.context) == judged[-CONTEXT_MESSAGES:]
        assert len(look.judged) + len(look.after) <= rules["max_messages"]
        assert look.read == seqs[len(judged) - len(look.context) :][: len(look.read)]
        judged += look.judged
        offered += look.candidates
    assert judged == seqs[: max(len(seqs) - rules["offset"], 0)]
    assert offered == [
        seq for count, seq in enumerate(judged, start=1) if count >= rules["min_messages"] and seq not in lifted
    ]


@given(st.lists(st.integers(0, CONTEXT_TOKENS + 1), max_size=20))
def test_the_context_is_what_fits_of_the_newest_messages(costs: list[int]) -> None:
    chosen = choose_context(list(enumerate(costs)))
    assert chosen == list(range(len(costs)))[len(costs) - len(chosen) :]
    fits = [count for count in range(len(costs) + 1) if sum(costs[len(costs) - count :]) <= CONTEXT_TOKENS]
    assert len(chosen) == min(max(fits[-1], LEAST_CONTEXT), CONTEXT_MESSAGES, len(costs))


@given(
    unjudged=st.integers(0, 40),
    earlier=st.integers(0, 40),
    min_messages=st.integers(1, 30),
    offset=st.integers(0, 20),
    after_pause=st.booleans(),
)
def test_a_look_starts_with_enough_messages_that_can_be_judged(
    unjudged: int, earlier: int, min_messages: int, offset: int, after_pause: bool
) -> None:
    enough = ENOUGH_AFTER_PAUSE if after_pause else ENOUGH_MESSAGES
    in_scene = unjudged + earlier
    rules = {"min_messages": min_messages, "offset": offset}
    due = is_look_due(unjudged, in_scene, after_pause=after_pause, cut_waits=False, **rules)
    assert due == (unjudged >= enough and unjudged > offset and in_scene >= min_messages + offset)
    waited = is_look_due(
        unjudged, in_scene, min_messages=min_messages, offset=offset, after_pause=False, cut_waits=True
    )
    assert waited == (unjudged > offset)


@given(judged=st.integers(0, 60), changed=st.sets(st.integers(1, 80), max_size=5).map(sorted))
def test_a_change_makes_only_new_messages_unjudged_again(judged: int, changed: list[int]) -> None:
    left = judged_after_change(judged, changed)
    assert max(judged - MOST_REJUDGED - 1, 0) <= left <= judged
    near = [seq for seq in changed if judged - MOST_REJUDGED < seq <= judged + 1]
    assert left == (max(near[0] - 2, 0) if near else judged)
