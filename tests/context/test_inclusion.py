from dataclasses import dataclass
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
