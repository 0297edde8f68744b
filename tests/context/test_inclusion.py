from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.coverage import Coverage
from app.chats.eligibility import Filters
from app.context.inclusion import STATUSES, Shown, find_status

State = Literal["pending", "failed", "empty", "made"]
Kind = Literal["memo", "summary", "recap"]

ID = "7"
BY = f"memo:{ID}"
ANCHOR_SEQ = 17
IN_WINDOW = Shown(ANCHOR_SEQ, in_prompt={BY})
BEYOND_BUDGET = Shown(ANCHOR_SEQ, in_prompt=set(), over_budget={BY})
LEFT_WINDOW = Shown(ANCHOR_SEQ, in_prompt=set())


@dataclass(frozen=True)
class Said:
    seq: int = 3
    role: str = "user"
    name: str | None = None
    kind: str | None = None
    tokens: int = 5
    blank: bool = False
    excluded: bool = False
    hidden_by: str | None = None
    deleted: bool = False


def _cover(state: State = "made", kind: Kind = "memo", cover_id: str | None = ID) -> Coverage:
    return Coverage(1, 24, kind, cover_id, state, expires=kind == "memo")


@pytest.mark.parametrize(
    ("state", "shown", "status"),
    [
        ("made", IN_WINDOW, "memo"),
        ("made", BEYOND_BUDGET, "out_of_budget"),
        ("made", LEFT_WINDOW, "expired"),
        ("pending", LEFT_WINDOW, "pending"),
        ("failed", LEFT_WINDOW, "failed"),
        ("empty", LEFT_WINDOW, "none"),
    ],
)
def test_an_old_message_has_the_status_of_its_coverage(state: State, shown: Shown, status: str) -> None:
    assert find_status(Said(), [_cover(state)], shown, Filters()) == (status, BY)


def test_an_old_message_without_coverage_has_status_none() -> None:
    assert find_status(Said(), [], IN_WINDOW, Filters()) == ("none", None)


def test_a_memory_is_named_if_no_layer_covers_the_message() -> None:
    learnt = Coverage(3, 3, "memory", "9", "learnt")
    named = Shown(ANCHOR_SEQ, in_prompt={"memory:9"})
    assert find_status(Said(), [learnt], named, Filters()) == ("none", "memory:9")
    assert find_status(Said(), [_cover("empty"), learnt], named, Filters()) == ("none", "memory:9")
    assert find_status(Said(), [learnt, _cover()], LEFT_WINDOW, Filters()) == ("expired", BY)
    assert find_status(Said(hidden_by="scenes"), [learnt], named, Filters()) == ("hidden", "memory:9")
    assert find_status(Said(excluded=True), [learnt], named, Filters()) == ("excluded", None)


@pytest.mark.parametrize("kind", ["summary", "recap"])
def test_a_message_is_in_the_version_in_use_that_covers_it(kind: Kind) -> None:
    third, fourth = _cover(kind=kind, cover_id="3"), _cover(kind=kind, cover_id="4")
    shown = replace(LEFT_WINDOW, in_prompt={f"{kind}:3"})
    assert find_status(Said(), [third], shown, Filters()) == (kind, f"{kind}:3")
    assert find_status(Said(), [fourth], shown, Filters()) == ("none", None)
    assert find_status(Said(), [fourth, third], shown, Filters()) == (kind, f"{kind}:3")


@pytest.mark.parametrize("hidden_by", [None, "scenes"])
def test_the_first_of_several_covering_layers_is_named(
    hidden_by: str | None,
) -> None:
    covers = [_cover(), _cover(kind="summary"), _cover(kind="recap")]
    shown = Shown(ANCHOR_SEQ, in_prompt={BY, f"summary:{ID}", f"recap:{ID}"})
    told = [find_status(Said(hidden_by=hidden_by), covers[first:], shown, Filters()) for first in range(3)]
    assert told == [("memo", BY), ("summary", f"summary:{ID}"), ("recap", f"recap:{ID}")]


def test_the_status_is_that_of_the_best_coverage() -> None:
    recap = _cover(kind="recap", cover_id="4")
    shown = Shown(ANCHOR_SEQ, in_prompt={"recap:4"}, over_budget={"memo:8"})
    worse = [
        _cover(cover_id="8"),
        _cover("pending", "summary", None),
        _cover("failed", "summary", None),
        _cover(),
        _cover("empty"),
    ]
    told = [find_status(Said(), [*reversed(worse[some:]), recap], shown, Filters())[0] for some in range(6)]
    assert told == ["recap"] * 6
    told = [find_status(Said(), [*reversed(worse[some:])], shown, Filters())[0] for some in range(5)]
    assert told == ["out_of_budget", "pending", "failed", "expired", "none"]


def test_a_message_excluded_by_one_layer_can_be_in_another() -> None:
    silent = replace(_cover(), filters=Filters(include_user=False))
    shown = Shown(ANCHOR_SEQ, in_prompt={BY, "recap:4"})
    covers = [silent, _cover(kind="recap", cover_id="4")]
    assert find_status(Said(), covers, shown, Filters()) == ("recap", "recap:4")
    assert find_status(Said(), covers[:1], shown, Filters()) == ("none", None)


@pytest.mark.parametrize("seq", [3, ANCHOR_SEQ])
def test_messages_hidden_by_scenes_are_in_the_recap_or_hidden(seq: int) -> None:
    hidden, recap = Said(seq, hidden_by="scenes"), _cover(kind="recap", cover_id="4")
    shown = Shown(ANCHOR_SEQ, in_prompt={"recap:4"})
    assert find_status(hidden, [recap], shown, Filters()) == ("recap", "recap:4")
    assert find_status(hidden, [recap], LEFT_WINDOW, Filters()) == ("hidden", None)
    assert find_status(hidden, [], shown, Filters()) == ("hidden", None)
    assert find_status(hidden, [_cover("pending", "recap", None)], shown, Filters()) == ("pending", None)
    assert find_status(replace(hidden, role="tool"), [recap], shown, Filters()) == ("hidden", None)
    assert find_status(replace(hidden, kind="thought"), [recap], shown, Filters()) == ("none", None)
    assert find_status(replace(hidden, excluded=True), [recap], shown, Filters()) == ("excluded", None)


@pytest.mark.parametrize("seq", [ANCHOR_SEQ, ANCHOR_SEQ + 1])
@pytest.mark.parametrize("change", [{}, {"excluded": True}, {"role": "system"}, {"role": "tool"}, {"tokens": 0}])
def test_every_message_in_the_history_is_verbatim(seq: int, change: dict[str, Any]) -> None:
    assert find_status(Said(seq, **change), [_cover()], IN_WINDOW, Filters(min_tokens=3)) == ("verbatim", None)


def test_the_message_before_the_anchor_is_not_verbatim() -> None:
    assert find_status(Said(ANCHOR_SEQ - 1), [_cover()], IN_WINDOW, Filters()) == ("memo", BY)


@pytest.mark.parametrize("seq", [ANCHOR_SEQ - 1, ANCHOR_SEQ])
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"hidden_by": "user"}, "hidden"),
        ({"hidden_by": "user", "excluded": True}, "excluded"),
        ({"kind": "thought"}, "none"),
        ({"blank": True}, "none"),
    ],
)
def test_an_unsent_message_has_the_status_of_its_reason(seq: int, change: dict[str, Any], status: str) -> None:
    assert find_status(Said(seq, **change), [_cover()], IN_WINDOW, Filters()) == (status, None)


@pytest.mark.parametrize(
    ("change", "filters"),
    [
        ({"role": "system"}, Filters()),
        ({"role": "tool"}, Filters()),
        ({"role": "user"}, Filters(include_user=False)),
        ({"role": "narrator"}, Filters(include_narrator=False)),
        ({"role": "assistant", "name": "Kai"}, Filters(disabled=("Kai",))),
        ({"tokens": 2}, Filters(min_tokens=3)),
    ],
)
def test_an_excluded_old_message_is_none_in_spite_of_a_memo(change: dict[str, Any], filters: Filters) -> None:
    assert find_status(Said(**change), [_cover()], IN_WINDOW, filters) == ("none", None)


def test_an_old_message_that_is_excluded_says_so() -> None:
    assert find_status(Said(excluded=True), [_cover()], IN_WINDOW, Filters()) == ("excluded", None)


def test_messages_hidden_by_scenes_are_still_summarised() -> None:
    assert find_status(Said(hidden_by="scenes"), [_cover()], IN_WINDOW, Filters()) == ("memo", BY)
    assert find_status(Said(ANCHOR_SEQ, hidden_by="scenes"), [_cover()], IN_WINDOW, Filters()) == ("memo", BY)


PINNED = replace(LEFT_WINDOW, pinned={3, ANCHOR_SEQ})
BEYOND_PINNED = replace(LEFT_WINDOW, pinned_over_budget={3})


@pytest.mark.parametrize("covers", [[], *([_cover(state)] for state in get_args(State))])
@pytest.mark.parametrize("change", [{}, {"excluded": True}, {"role": "system"}, {"role": "tool"}])
def test_a_pinned_message_is_always_included(change: dict[str, Any], covers: list[Coverage]) -> None:
    assert find_status(Said(**change), covers, PINNED, Filters()) == ("pinned", None)


def test_a_pinned_one_in_the_history_is_verbatim() -> None:
    assert find_status(Said(ANCHOR_SEQ), [_cover()], PINNED, Filters()) == ("verbatim", None)
    assert find_status(Said(ANCHOR_SEQ, hidden_by="scenes"), [_cover()], PINNED, Filters()) == ("pinned", None)


@pytest.mark.parametrize(
    ("state", "in_prompt", "told"),
    [
        ("made", {BY}, ("memo", BY)),
        ("pending", set(), ("pending", BY)),
        ("failed", set(), ("failed", BY)),
        ("made", set(), ("out_of_budget", None)),
        ("empty", set(), ("out_of_budget", None)),
    ],
)
def test_a_pinned_one_over_budget_is_reported_like_others(
    state: State, in_prompt: set[str], told: tuple[str, str | None]
) -> None:
    shown = replace(BEYOND_PINNED, in_prompt=in_prompt)
    assert find_status(Said(), [_cover(state)], shown, Filters()) == told


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"excluded": True}, "excluded"),
        ({"role": "system"}, "out_of_budget"),
        ({"hidden_by": "scenes"}, "out_of_budget"),
        ({}, "out_of_budget"),
    ],
)
def test_without_a_memo_a_pinned_one_over_budget_says_why(change: dict[str, Any], status: str) -> None:
    assert find_status(Said(**change), [], BEYOND_PINNED, Filters()) == (status, None)


@given(
    st.builds(
        Said,
        seq=st.integers(15, 19),
        role=st.sampled_from(["user", "assistant", "system", "tool", "narrator"]),
        kind=st.sampled_from([None, "thought"]),
        blank=st.booleans(),
        excluded=st.booleans(),
        hidden_by=st.sampled_from([None, "user", "scenes"]),
    ),
    st.lists(st.builds(_cover, st.sampled_from(get_args(State))), max_size=1),
    st.sampled_from([IN_WINDOW, BEYOND_BUDGET, LEFT_WINDOW]),
)
def test_each_message_has_one_status_and_its_source(message: Said, covers: list[Coverage], shown: Shown) -> None:
    status, by = find_status(message, covers, shown, Filters())
    assert status in {*STATUSES, *get_args(Kind)}
    if status in ("memo", "expired", "out_of_budget", "pending", "failed"):
        assert by == BY
    elif status != "none":
        assert by is None


_ROLES = st.sampled_from(["user", "assistant", "system", "tool", "narrator"])
_SEQS = st.integers(15, 19)
_ANY_SEQS = st.frozensets(_SEQS)
_FILTERS = st.builds(
    Filters,
    include_user=st.booleans(),
    include_system=st.booleans(),
    include_narrator=st.booleans(),
    min_tokens=st.sampled_from([0, 0, 5, 6]),
    disabled=st.sampled_from([(), ("Kai",)]),
)
_SAID = st.builds(
    Said,
    seq=_SEQS,
    role=_ROLES,
    name=st.sampled_from([None, "Kai", "Ren"]),
    kind=st.sampled_from([None, None, "thought"]),
    tokens=st.integers(4, 6),
    blank=st.sampled_from([False, False, True]),
    excluded=st.sampled_from([False, False, True]),
    hidden_by=st.sampled_from([None, None, "user", "scenes"]),
)
_IDS = ["7", "8"]
_MARKS = st.frozensets(st.sampled_from([f"{kind}:{cover_id}" for kind in get_args(Kind) for cover_id in _IDS]))
_COVERS = st.lists(
    st.builds(
        Coverage,
        first_seq=st.sampled_from([1, 1, ANCHOR_SEQ]),
        last_seq=st.just(24),
        kind=st.sampled_from(get_args(Kind)),
        id=st.sampled_from([*_IDS, None]),
        state=st.sampled_from(get_args(State)),
        filters=st.none() | _FILTERS,
    ).map(lambda one: replace(one, expires=one.kind == "memo")),
    max_size=4,
)


@st.composite
def _shown(draw: st.DrawFn) -> Shown:
    """Draw what a context includes: versions, items over budget, pinned messages and those over their budget."""
    in_prompt, pinned = draw(_MARKS), draw(_ANY_SEQS)
    return Shown(
        ANCHOR_SEQ,
        in_prompt=in_prompt,
        over_budget=draw(_MARKS) - in_prompt,
        pinned=pinned,
        pinned_over_budget=draw(_ANY_SEQS) - pinned,
    )


@given(_SAID, _COVERS, _shown(), _FILTERS)
def test_the_status_is_what_the_rules_say_one_after_the_other(
    message: Said, covers: list[Coverage], shown: Shown, filters: Filters
) -> None:
    assert find_status(message, covers, shown, filters) == _by_the_rules(message, covers, shown, filters)


def _by_the_rules(message: Said, covers: Sequence[Coverage], shown: Shown, filters: Filters) -> tuple[str, str | None]:
    """The slow, obvious way: everything that could be said, of which the first counts that is true."""
    is_sendable = message.kind is None and not message.blank
    telling = [cover for cover in covers if _passes_filters(message, cover.filters or filters)]
    names = {id(cover): f"{cover.kind}:{cover.id}" if cover.id else None for cover in telling}
    made = [cover for cover in telling if cover.state == "made"]
    gone = [cover for cover in made if cover.kind == "memo" and not {names[id(cover)]} & shown.in_prompt]

    def found(some: Sequence[Coverage], status: str) -> list[tuple[str, str | None]]:
        return [(status, names[id(cover)]) for cover in some]

    answers: list[tuple[str, str | None]] = [("verbatim", None)] * (
        message.seq >= ANCHOR_SEQ and message.hidden_by is None and is_sendable
    )
    answers += [("pinned", None)] * (message.seq in shown.pinned)
    answers += [(one.kind, names[id(one)]) for one in made if names[id(one)] in shown.in_prompt]
    answers += found([one for one in made if names[id(one)] in shown.over_budget], "out_of_budget")
    # In the order of the layers: a memo that is held waits like one that is still to be made.
    held = [one for one in gone if one.first_seq >= ANCHOR_SEQ]
    answers += found([one for one in telling if one.state == "pending" or one in held], "pending")
    answers += found([one for one in telling if one.state == "failed"], "failed")
    kept_out = _kept_out(message, [cover.filters or filters for cover in covers] or [filters])
    answers += [("out_of_budget", None)] * (message.seq in shown.pinned_over_budget and not kept_out)
    answers += found(gone, "expired")
    answers += kept_out
    answers += [("hidden", None)] * (message.hidden_by == "scenes" and message.kind is None)
    answers += found([one for one in covers[:1] if one in telling and one.state == "empty"], "none")
    return next(iter(answers), ("none", None))


def _passes_filters(message: Said, rules: Filters) -> bool:
    by_role = {
        "user": rules.include_user,
        "assistant": message.name not in rules.disabled,
        "system": rules.include_system,
        "tool": False,
        "narrator": rules.include_narrator,
    }[message.role]
    kept_out = message.excluded or message.hidden_by == "user"
    is_sendable = message.kind is None and not message.blank
    return by_role and not kept_out and is_sendable and message.tokens >= rules.min_tokens


def _kept_out(message: Said, each: Sequence[Filters]) -> list[tuple[str, str | None]]:
    """Return the status of an excluded message; hiding counts only if the message would be summarised otherwise."""
    if message.excluded:
        return [("excluded", None)]
    heard = {"user": [one.include_user for one in each], "system": [one.include_system for one in each]}
    if message.hidden_by == "user" and message.kind is None and any(heard.get(message.role, [True])):
        return [("hidden", None)]
    return []
