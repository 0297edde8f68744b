from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.chats.budgets import choose_newest_first
from app.chats.settings import Budget
from app.context.budget import BudgetTooSmallError, fit
from app.context.calls import find_calls
from app.context.formats import is_said, render, word
from app.context.order import arrange
from app.context.parts import Fitted, Parts
from app.context.segments import Format, HistoryMessage, Rendered, RenderOptions
from app.context.tables import ORDER
from app.layers.contribution import Item, Placement, Position
from tests.context.arrangements import (
    all_segments,
    call,
    entry,
    manners,
    memo,
    memos_of,
    parts,
    render_options,
    segment,
    talk,
)
from tests.talk import FORMATS

FLOOR = {"system", "character", "user", "instruction", "pinned", "newest"}


FULL = Parts(
    segments=[
        segment("system"),
        segment("user"),
        segment("blocks"),
        segment("facts"),
        segment("pinned"),
        segment("diary"),
        segment("summary"),
        segment("recalled"),
        segment("time"),
        segment("first", after="user"),
        segment("second", after="in_chat", depth=2),
    ],
    contributions=[memos_of([memo(2, pinned=True), memo(4), memo(6), memo(7), memo(11)])],
    history=talk(12),
    newest=entry(13),
    edges=[1, 5, 9],
)


def fitted(one: Parts, max_tokens: int, how: RenderOptions) -> Fitted | int:
    """What fits, or the tokens that are needed."""
    try:
        return fit(one, max_tokens, how)
    except BudgetTooSmallError as error:
        return error.needed_tokens


def every_omission(one: Parts, how: RenderOptions) -> list[list[str]]:
    """What is left out with ever smaller budgets, each list once."""
    lists: list[list[str]] = []
    for max_tokens in range(1_000, 0, -1):
        left = fitted(one, max_tokens, how)
        if isinstance(left, int):
            break
        names = [omission.name for omission in left.omitted]
        if names not in lists:
            lists.append(names)
    return lists


def test_everything_is_left_out_in_the_promised_order() -> None:
    order = ["recalled", "time", "diary", "memos 1–5", "memos 6–10", "memos 11–15", "pinned memos 1–5"]
    order += ["summary", "facts", "blocks", "second", "first", "history"]
    assert every_omission(FULL, render_options("openai"))[-1] == order


@pytest.mark.parametrize("after", [None, "before_prompt", "in_chat"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_a_recap_is_omitted_whole_in_order_at_any_position(fmt: Format, after: str | None) -> None:
    recap = segment("recap", after=after, depth=2)
    order = every_omission(replace(FULL, segments=[recap, *FULL.segments]), render_options(fmt))[-1]
    assert order[order.index("pinned memos 1–5") :][:4] == ["pinned memos 1–5", "summary", "recap", "facts"]
    assert order[-3:] == ["second", "first", "history"]


@pytest.mark.parametrize("position", ["before_prompt", "in_chat"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_memos_are_omitted_by_group_at_any_position(fmt: Format, position: Position) -> None:
    moved = FULL.contributions[0]._replace(placement=Placement(position, 2, "user"))
    order = every_omission(replace(FULL, contributions=[moved]), render_options(fmt))[-1]
    assert order == every_omission(FULL, render_options("openai"))[-1]


def test_each_step_omits_one_item_more() -> None:
    for fewer, more in zip(lists := every_omission(FULL, render_options("segments")), lists[1:], strict=False):
        assert more[: len(fewer)] == fewer


def test_a_segment_gets_shorter_before_it_is_left_out() -> None:
    versions = [segment("recalled", "word " * count) for count in (9, 5, 2)]
    one = replace(FULL, segments=[segment("recalled", "word " * 20)], shorter={"recalled": versions})
    how = render_options("segments")
    whole = fitted(one, 10_000, how)
    assert isinstance(whole, Fitted)
    needed = render(whole.layout).tokens
    found = {}
    for less in range(24):
        left = fitted(one, needed - less, how)
        assert isinstance(left, Fitted)
        (text, *_) = [row["text"].split() for row in render(left.layout).segments if row["name"] == "recalled"] or [[]]
        found[len(text)] = [(omission.name, omission.tokens) for omission in left.omitted if omission.name != "time"]
    tokens = [segment("recalled", "word " * count).tokens for count in (20, 9, 5, 2)]
    lacking = [tokens[0] - kept for kept in tokens[1:]]
    assert found == {
        20: [],
        **{count: [("recalled", lack)] for count, lack in zip((9, 5, 2), lacking, strict=True)},
        0: [("recalled", tokens[0])],
    }


def test_history_is_trimmed_by_edges_and_then_by_messages() -> None:
    starts = []
    how = render_options("openai")
    for max_tokens in range(200, 0, -1):
        left = fitted(replace(FULL, contributions=(), segments=()), max_tokens, how)
        if isinstance(left, int):
            break
        starts.append(left.layout.first_sent_seq)
    assert list(dict.fromkeys(starts)) == [1, 5, 9, 10, 11, 12, 13]


def test_a_tight_budget_does_not_move_the_history_every_turn() -> None:
    starts = []
    for length in range(40, 120, 2):
        one = Parts(history=talk(length), newest=entry(length + 1), edges=range(1, length, 8))
        starts.append(fit(one, 200, render_options("openai")).layout.first_sent_seq)
    assert starts == sorted(starts)
    assert len(set(starts)) <= 80 // 8 + 1
    assert {start % 8 for start in starts} == {1}


def test_the_remaining_memos_are_rendered_at_their_position() -> None:
    built = []
    for max_tokens in range(250, 0, -1):
        left = fitted(FULL, max_tokens, render_options("openai"))
        if isinstance(left, int):
            break
        rows = render(left.layout).segments
        memos = [row["text"] for row in rows if row["name"] == "memos"]
        assert memos == (["\n\n".join(["## Memo Book", *(one.text for one in kept(left))])] if kept(left) else [])
        names = [row["name"] for row in rows]
        assert not memos or names.index("memos") + 1 == names.index("history")
        built.append(tuple(int(one.text[5:-1]) for one in kept(left)))
    assert list(dict.fromkeys(built)) == [(2, 4, 6, 7, 11), (2, 6, 7, 11), (2, 11), (2,), ()]


def test_a_budget_of_exactly_the_tokens_leaves_nothing_out() -> None:
    how = render_options("anthropic", factor=1.35)
    whole = render(fit(FULL, 10_000, how).layout).tokens
    assert not fit(FULL, whole, how).omitted
    assert [omission.name for omission in fit(FULL, whole - 1, how).omitted] == ["recalled"]


def test_blank_messages_and_segments_are_left_out_and_listed() -> None:
    history = [entry(1), entry(2, "assistant", " \n"), entry(3, "assistant", "", tool_calls=[call("0")])]
    one = Parts(segments=[segment("system", " ")], history=history, newest=entry(4, text="\t"))
    left = fit(one, 100, render_options("openai"))
    assert [(gone.name, gone.why) for gone in left.omitted] == [
        ("system", "blank"),
        ("message:m2", "blank"),
        ("message:m4", "blank"),
    ]
    assert [said.seq for said in left.layout.entries] == [1, 3]


def test_a_limit_below_the_minimum_reports_the_needed_tokens() -> None:
    with pytest.raises(BudgetTooSmallError) as caught:
        fit(FULL, 1, render_options("openai"))
    left = fit(FULL, caught.value.needed_tokens, render_options("openai"))
    assert {row["name"] for row in render(left.layout).segments} <= FLOOR
    assert isinstance(fitted(FULL, caught.value.needed_tokens - 1, render_options("openai")), int)


def test_the_last_message_stays_also_when_it_is_the_assistants() -> None:
    one = Parts(history=talk(4))
    needed = fitted(one, 1, render_options("openai"))
    assert isinstance(needed, int)
    assert [said.seq for said in fit(one, needed, render_options("openai")).layout.entries] == [4]


def test_a_tool_call_leaves_only_together_with_its_result() -> None:
    history = [
        entry(1),
        entry(2, "assistant", "", tool_calls=[call("0")]),
        entry(3, "tool", "Found.", tool_call_id="0"),
        entry(4),
    ]
    one = Parts(history=history, newest=entry(5), edges=[3])
    starts = {
        left.layout.first_sent_seq
        for max_tokens in range(100)
        if isinstance(left := fitted(one, max_tokens, render_options("openai")), Fitted)
    }
    assert starts == {1, 2, 4, 5}


@given(parts(), manners(), st.integers(0, 400))
def test_fitting_equals_trying_each_omission_in_turn(drawn: Parts, how: RenderOptions, max_tokens: int) -> None:
    left = fitted(drawn, max_tokens, how)
    expected = try_all(drawn, max_tokens, how)
    assert (left if isinstance(left, int) else render(left.layout)) == expected


def try_all(drawn: Parts, max_tokens: int, how: RenderOptions) -> Rendered | int:
    """Return the expected result the slow way: render each shorter context until one fits."""
    tokens = 0
    for one in every_shorter(drawn):
        answer = render(word(arrange(all_segments(one), one.history, one.newest, one.anchor_seq), how))
        tokens = answer.tokens
        if tokens <= max_tokens:
            return answer
    return tokens


def is_of(one: Item, pinned: bool, first: int) -> bool:
    return one.pinned == pinned and one.group is not None and one.group.order == first


def every_shorter(drawn: Parts) -> Iterator[Parts]:
    yield drawn
    left = drawn
    for name in ("recalled", "time", "diary"):
        yield (left := without(left, name))
    for pinned in (False, True):
        for first in range(1, 30, 5):
            items = [one for one in left.contributions[0].items if not is_of(one, pinned, first)]
            yield (left := replace(left, contributions=[left.contributions[0]._replace(items=items)]))
    of_caller = [one.name for one in reversed(drawn.segments) if one.name not in ORDER]
    for name in ("summary", "recap", "facts", "blocks", *of_caller):
        yield (left := without(left, name))
    history = [one for one in left.history if is_said(one)]
    said_last = bool(left.newest and is_said(left.newest))
    tails = [tail for start in range(1, len(history) + said_last) if is_whole(history, tail := history[start:])]
    at_edges = [tail for tail in tails if tail and any(begins_at(history, tail, edge) for edge in drawn.edges)]
    for tail in (*at_edges, *(tail for tail in tails if not at_edges or len(tail) < len(at_edges[-1]))):
        yield replace(left, history=tail)


def kept(left: Fitted) -> list[Item]:
    """The items of the layers that are left."""
    return [item for one in left.contributions for item in one.items]


def without(one: Parts, name: str) -> Parts:
    return replace(one, segments=[left for left in one.segments if left.name != name])


def is_whole(history: Sequence[HistoryMessage], tail: Sequence[HistoryMessage]) -> bool:
    gone = len(history) - len(tail)
    return not any(made < gone <= answered for answered, made in find_calls(history).items())


def begins_at(history: Sequence[HistoryMessage], tail: Sequence[HistoryMessage], edge: int) -> bool:
    return [one for one in history if one.seq >= edge] == tail


@given(parts(), manners(), st.integers(0, 400), st.integers(0, 400))
def test_a_smaller_budget_includes_nothing_a_larger_one_omits(
    drawn: Parts, how: RenderOptions, one: int, other: int
) -> None:
    small, big = fitted(drawn, min(one, other), how), fitted(drawn, max(one, other), how)
    assume(isinstance(small, Fitted) and isinstance(big, Fitted))
    assert isinstance(small, Fitted)
    assert isinstance(big, Fitted)
    assert render(small.layout).tokens <= min(one, other)
    assert shown(small) <= shown(big)
    names = [omission.name for omission in big.omitted]
    assert [omission.name for omission in small.omitted][: len(names)] == names


def shown(left: Fitted) -> set[str]:
    rows = render(left.layout).segments
    names = {row["name"] for row in rows}
    return names | {one.text for one in kept(left)} | {str(one.seq) for one in left.layout.entries}


@given(parts(), manners())
def test_the_reported_minimum_is_exact(drawn: Parts, how: RenderOptions) -> None:
    needed = fitted(drawn, -1, how)
    assert isinstance(needed, int)
    left = fitted(drawn, needed, how)
    assert isinstance(left, Fitted)
    assert render(left.layout).tokens <= needed


def test_a_layers_budget_fills_from_the_newest_and_then_stops() -> None:
    assert choose_newest_first([1, 5, 3, 2], 5) == {2, 3}
    assert choose_newest_first([1, 6, 3, 2], 6) == {2, 3}
    assert choose_newest_first([1, 6, 3, 2], None) == {0, 1, 2, 3}
    assert choose_newest_first([1, 2, 3], 0) == set()


def test_missing_items_use_no_tokens_of_a_layers_budget() -> None:
    assert choose_newest_first([2, None, 3, None], 5) == {0, 2}


@st.composite
def costs_and_limits(draw: st.DrawFn) -> tuple[list[int | None], int | None]:
    """Costs, some of them missing, and a limit: none, zero, anything, or about what a run of the newest costs."""
    costs = draw(st.lists(st.none() | st.integers(0, 9), max_size=12))
    run = costs[draw(st.integers(0, len(costs))) :]
    about = max(0, sum(cost or 0 for cost in run) + draw(st.integers(-1, 1)))
    return costs, draw(st.sampled_from([None, 0, about, about]) | st.integers(0, 120))


@given(costs_and_limits())
def test_a_layers_budget_takes_the_longest_newest_run_that_fits(drawn: tuple[list[int | None], int | None]) -> None:
    costs, limit = drawn
    runs = [{at for at in range(start, len(costs)) if costs[at] is not None} for start in range(len(costs) + 1)]
    fits = [run for run in runs if limit is None or sum(costs[at] or 0 for at in run) <= limit]
    assert choose_newest_first(costs, limit) == max(fits, key=len)


@given(st.integers(1, 2_000_000), st.integers(0, 300))
def test_a_share_of_the_context_is_the_most_whole_tokens_in_it(context_tokens: int, value: int) -> None:
    tokens = Budget(type="percent", value=value).tokens(context_tokens)
    assert tokens <= Fraction(value, 100) * context_tokens < tokens + 1
    assert Budget(type="absolute", value=value).tokens(context_tokens) == value
