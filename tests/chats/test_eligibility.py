from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.eligibility import Filters, Ineligible, Role, is_eligible, is_sent, why_ineligible


@dataclass(frozen=True)
class Row:
    role: str = "assistant"
    name: str | None = None
    kind: str | None = None
    tokens: int = 10
    blank: bool = False
    excluded: bool = False
    hidden_by: str | None = None
    deleted: bool = False


Reason = tuple[Ineligible, dict[str, Any], dict[str, Any]]

# Each reason with a message and filters that give it alone, in the order in which they are looked for.
REASONS: list[Reason] = [
    ("deleted", {"deleted": True}, {}),
    ("excluded", {"excluded": True}, {}),
    ("user", {"role": "user"}, {"include_user": False}),
    ("thought", {"kind": "thought"}, {}),
    ("system", {"role": "system"}, {"include_system": False}),
    ("hidden", {"hidden_by": "user"}, {}),
    ("narrator", {"role": "narrator"}, {"include_narrator": False}),
    ("disabled", {"role": "assistant", "name": "Kai"}, {"disabled": ("Kai",)}),
    ("tool", {"role": "tool"}, {}),
    ("blank", {"blank": True}, {}),
    ("short", {"tokens": 9}, {"min_tokens": 10}),
]

rows = st.builds(
    Row,
    role=st.sampled_from(get_args(Role)),
    name=st.sampled_from([None, "Kai", "Mira"]),
    kind=st.sampled_from([None, None, "thought"]),
    tokens=st.integers(0, 3),
    blank=st.booleans(),
    excluded=st.booleans(),
    hidden_by=st.sampled_from([None, "user", "scenes"]),
    deleted=st.booleans(),
)
filters = st.builds(
    Filters,
    include_user=st.booleans(),
    include_system=st.booleans(),
    include_narrator=st.booleans(),
    min_tokens=st.integers(0, 3),
    disabled=st.sampled_from([(), ("Kai",), ("Kai", "Mira")]),
)


@pytest.mark.parametrize(("reason", "message", "settings"), REASONS, ids=[reason for reason, *_ in REASONS])
def test_each_reason_alone_makes_a_message_ineligible(
    reason: str, message: dict[str, Any], settings: dict[str, Any]
) -> None:
    assert why_ineligible(Row(**message), Filters(**settings)) == reason
    assert not is_eligible(Row(**message), Filters(**settings))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (first, second)
        for first, second in combinations(REASONS, 2)
        if len({message["role"] for _, message, _ in (first, second) if "role" in message}) < 2
    ],
    ids=lambda found: found[0],
)
def test_the_first_of_two_reasons_in_the_list_is_returned(first: Reason, second: Reason) -> None:
    row = Row(**(first[1] | second[1]))
    assert why_ineligible(row, Filters(**(first[2] | second[2]))) == first[0]


def test_every_reason_is_in_the_list() -> None:
    assert {reason for reason, *_ in REASONS} == set(get_args(Ineligible))


@pytest.mark.parametrize(
    "row",
    [
        Row("user"),
        Row("assistant", name="Kai"),
        Row("narrator"),
        Row(hidden_by="scenes"),
        Row("user", name="Kai"),
    ],
)
def test_user_and_character_messages_are_summarised_by_default(row: Row) -> None:
    assert is_eligible(row, Filters(disabled=("Mira",)))


def test_system_messages_are_summarised_only_when_asked_for() -> None:
    assert why_ineligible(Row("system"), Filters()) == "system"
    assert is_eligible(Row("system"), Filters(include_system=True))


def test_a_disabled_character_is_excluded_but_not_a_user() -> None:
    kai_off = Filters(disabled=("Kai",))
    assert why_ineligible(Row("assistant", name="Kai"), kai_off) == "disabled"
    assert is_eligible(Row("user", name="Kai"), kai_off)
    assert is_eligible(Row("assistant"), kai_off)


@pytest.mark.parametrize(("tokens", "eligible"), [(4, False), (5, True), (6, True)])
def test_as_many_tokens_as_the_minimum_pass(tokens: int, eligible: bool) -> None:
    assert is_eligible(Row(tokens=tokens), Filters(min_tokens=5)) is eligible


@given(rows, filters)
def test_a_message_without_a_reason_against_it_is_eligible(row: Row, chosen: Filters) -> None:
    heard = {"user": chosen.include_user, "system": chosen.include_system, "narrator": chosen.include_narrator}
    speaks = heard.get(row.role, row.role == "assistant" and row.name not in chosen.disabled)
    marked = row.deleted or row.excluded or row.hidden_by == "user" or row.kind == "thought" or row.blank
    marked = marked or row.tokens == 0
    assert is_eligible(row, chosen) is (speaks and not marked and row.tokens >= chosen.min_tokens)


@given(filters)
def test_filters_come_back_from_json_as_they_were(chosen: Filters) -> None:
    assert Filters.from_json(orjson.loads(orjson.dumps(chosen.to_json()))) == chosen


def test_old_filters_get_the_default_of_a_new_filter() -> None:
    assert Filters.from_json({"include_user": False}) == Filters(include_user=False)


@pytest.mark.parametrize("role", get_args(Role))
@pytest.mark.parametrize("excluded", [True, False])
def test_every_role_is_sent_even_if_excluded_from_summaries(role: str, excluded: bool) -> None:
    assert is_sent(Row(role, excluded=excluded, tokens=0))


@pytest.mark.parametrize(
    "change",
    [{"deleted": True}, {"hidden_by": "user"}, {"hidden_by": "scenes"}, {"kind": "thought"}, {"blank": True}],
)
def test_deleted_hidden_or_blank_messages_are_not_sent(change: dict[str, Any]) -> None:
    assert not is_sent(replace(Row("user"), **change))


def test_a_message_that_only_calls_a_tool_is_sent_only() -> None:
    call = Row("assistant", tokens=0)
    assert is_sent(call)
    assert not is_eligible(call, Filters())
