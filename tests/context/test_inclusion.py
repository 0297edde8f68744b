from dataclasses import dataclass, replace
from typing import Any, Literal, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.cover import Cover
from app.chats.eligibility import Filters
from app.context.inclusion import Shown, Status, find_status

State = Literal["pending", "failed", "empty", "made"]

ID = UUID(int=7)
BY = f"memo:{ID}"
ANCHOR_SEQ = 17
IN_WINDOW = Shown(ANCHOR_SEQ, window={str(ID)}, within_budget={str(ID)})
BEYOND_BUDGET = Shown(ANCHOR_SEQ, window={str(ID)}, within_budget=set())
LEFT_WINDOW = Shown(ANCHOR_SEQ, window=set(), within_budget=set())


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


def _cover(state: State = "made", kind: Literal["memo", "summary", "recap"] = "memo") -> Cover:
    return Cover(1, 24, kind, ID, state)


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
def test_what_stands_for_an_old_message_tells_its_status(state: State, shown: Shown, status: Status) -> None:
    assert find_status(Said(), _cover(state), shown, Filters()) == (status, BY)


def test_an_old_message_that_nothing_stands_for_is_not_there() -> None:
    assert find_status(Said(), None, IN_WINDOW, Filters()) == ("none", None)


@pytest.mark.parametrize("kind", ["summary", "recap"])
def test_what_stands_for_a_message_is_named_by_its_kind(kind: Literal["summary", "recap"]) -> None:
    assert find_status(Said(), _cover(kind=kind), IN_WINDOW, Filters()) == (kind, f"{kind}:{ID}")


@pytest.mark.parametrize("seq", [ANCHOR_SEQ, ANCHOR_SEQ + 1])
@pytest.mark.parametrize("change", [{}, {"excluded": True}, {"role": "system"}, {"role": "tool"}, {"tokens": 0}])
def test_what_is_sent_is_verbatim_whatever_else_holds_for_it(seq: int, change: dict[str, Any]) -> None:
    assert find_status(Said(seq, **change), _cover(), IN_WINDOW, Filters(min_tokens=3)) == ("verbatim", None)


def test_the_message_before_the_anchor_is_not_verbatim() -> None:
    assert find_status(Said(ANCHOR_SEQ - 1), _cover(), IN_WINDOW, Filters()) == ("memo", BY)


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
def test_what_is_not_sent_says_why_on_both_sides_of_the_anchor(
    seq: int, change: dict[str, Any], status: Status
) -> None:
    assert find_status(Said(seq, **change), _cover(), IN_WINDOW, Filters()) == (status, None)


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
def test_an_old_message_that_is_never_summarised_is_not_there_though_a_memo_lies_over_it(
    change: dict[str, Any], filters: Filters
) -> None:
    assert find_status(Said(**change), _cover(), IN_WINDOW, filters) == ("none", None)


def test_an_old_message_that_is_excluded_says_so() -> None:
    assert find_status(Said(excluded=True), _cover(), IN_WINDOW, Filters()) == ("excluded", None)


def test_what_scenes_hide_is_still_summarised() -> None:
    assert find_status(Said(hidden_by="scenes"), _cover(), IN_WINDOW, Filters()) == ("memo", BY)
    assert find_status(Said(ANCHOR_SEQ, hidden_by="scenes"), _cover(), IN_WINDOW, Filters()) == ("memo", BY)


PINNED = replace(LEFT_WINDOW, pinned={3, ANCHOR_SEQ})
BEYOND_PINNED = replace(LEFT_WINDOW, pinned_over_budget={3})


@pytest.mark.parametrize("cover", [None, *map(_cover, get_args(State))])
@pytest.mark.parametrize("change", [{}, {"excluded": True}, {"role": "system"}, {"role": "tool"}])
def test_a_pinned_message_stands_there_itself_whatever_else_holds_for_it(
    change: dict[str, Any], cover: Cover | None
) -> None:
    assert find_status(Said(**change), cover, PINNED, Filters()) == ("pinned", None)


def test_a_pinned_message_that_is_still_in_the_history_is_verbatim_and_one_that_scenes_hide_is_pinned() -> None:
    assert find_status(Said(ANCHOR_SEQ), _cover(), PINNED, Filters()) == ("verbatim", None)
    assert find_status(Said(ANCHOR_SEQ, hidden_by="scenes"), _cover(), PINNED, Filters()) == ("pinned", None)


@pytest.mark.parametrize(
    ("state", "window", "told"),
    [
        ("made", {str(ID)}, ("memo", BY)),
        ("pending", set(), ("pending", BY)),
        ("failed", set(), ("failed", BY)),
        ("made", set(), ("out_of_budget", None)),
        ("empty", set(), ("out_of_budget", None)),
    ],
)
def test_a_pinned_message_beyond_its_budget_reads_like_any_other_unless_nothing_stands_for_it(
    state: State, window: set[str], told: tuple[Status, str | None]
) -> None:
    shown = replace(BEYOND_PINNED, window=window, within_budget=window)
    assert find_status(Said(), _cover(state), shown, Filters()) == told


@pytest.mark.parametrize(
    ("change", "status"),
    [({"excluded": True}, "excluded"), ({"role": "system"}, "out_of_budget"), ({}, "out_of_budget")],
)
def test_a_pinned_message_beyond_its_budget_that_no_memo_tells_of_says_which_of_both_keeps_it_out(
    change: dict[str, Any], status: Status
) -> None:
    assert find_status(Said(**change), None, BEYOND_PINNED, Filters()) == (status, None)


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
    st.none() | st.builds(_cover, st.sampled_from(get_args(State))),
    st.sampled_from([IN_WINDOW, BEYOND_BUDGET, LEFT_WINDOW]),
)
def test_every_message_has_one_status_and_names_what_stands_for_it_or_nothing(
    message: Said, cover: Cover | None, shown: Shown
) -> None:
    status, by = find_status(message, cover, shown, Filters())
    assert status in get_args(Status)
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
_COVERS = st.builds(
    Cover,
    first_seq=st.just(1),
    last_seq=st.just(24),
    kind=st.sampled_from(["memo", "summary", "recap"]),
    id=st.just(ID),
    state=st.sampled_from(get_args(State)),
    filters=st.none() | _FILTERS,
)


@st.composite
def _shown(draw: st.DrawFn) -> Shown:
    """What can be shown at once: a window, what its budget takes of it, pinned ones and those beyond their budget."""
    window = draw(st.frozensets(st.sampled_from([str(ID), str(UUID(int=8))])))
    pinned = draw(_ANY_SEQS)
    return Shown(
        ANCHOR_SEQ,
        window=window,
        within_budget=window & draw(st.frozensets(st.sampled_from([str(ID), str(UUID(int=8))]))),
        pinned=pinned,
        pinned_over_budget=draw(_ANY_SEQS) - pinned,
    )


@given(_SAID, st.none() | _COVERS, _shown(), _FILTERS)
def test_the_status_is_what_the_rules_say_one_after_the_other(
    message: Said, cover: Cover | None, shown: Shown, filters: Filters
) -> None:
    assert find_status(message, cover, shown, filters) == _by_the_rules(message, cover, shown, filters)


def _by_the_rules(message: Said, cover: Cover | None, shown: Shown, filters: Filters) -> tuple[str, str | None]:
    """The slow, obvious way: everything that could be said, of which the first counts that is true."""
    rules = (cover.filters if cover else None) or filters
    told_of = {
        "user": rules.include_user,
        "assistant": message.name not in rules.disabled,
        "system": rules.include_system,
        "tool": False,
        "narrator": rules.include_narrator,
    }[message.role]
    # What is never told of anyway was not kept from being told by hiding it; the narrator is judged after that.
    by_hiding = message.kind is None and (told_of or message.role not in ("user", "system"))
    summarised = told_of and message.kind is None and not message.blank and message.tokens >= rules.min_tokens
    in_history = message.seq >= ANCHOR_SEQ and message.hidden_by is None and message.kind is None and not message.blank
    over = message.seq in shown.pinned_over_budget
    name = f"{cover.kind}:{ID}" if cover else None
    state = cover.state if cover else "missing"
    answers: list[tuple[bool, str, str | None]] = [
        (in_history, "verbatim", None),
        (message.seq in shown.pinned, "pinned", None),
        (message.excluded, "excluded", None),
        (message.hidden_by == "user" and by_hiding, "hidden", None),
        (not summarised and over, "out_of_budget", None),
        (not summarised or message.hidden_by == "user", "none", None),
        (state == "pending", "pending", name),
        (state == "failed", "failed", name),
        (state == "made" and str(ID) in shown.within_budget, cover.kind if cover else "", name),
        (state == "made" and str(ID) in shown.window, "out_of_budget", name),
        (over, "out_of_budget", None),
        (state == "made", "expired", name),
        (True, "none", name),
    ]
    return next((status, by) for holds, status, by in answers if holds)
