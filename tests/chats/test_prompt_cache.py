"""How long the provider is asked to keep a prompt: the cheapest choice for the pauses of a chat."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.eligibility import Filters
from app.chats.head import Head
from app.chats.prompt_cache import (
    MOST_PAUSES,
    CacheChoice,
    choice_in_effect,
    choose,
    find_new_share,
    find_ttl_s,
    note_pause,
    price,
)
from app.chats.settings import effective
from tests.conftest import NOON

CHOICES: tuple[CacheChoice, ...] = ("off", "5m", "1h")


def head_with(pauses_s: list[int], **settings: Any) -> Head:
    head = Head(UUID(int=1), UUID(int=2), "acme", effective(settings), Filters(), last_active_at=NOON)
    for pause_s in pauses_s:
        note_pause(head, pause_s, ends=True)
    return head


def test_prices_are_those_of_the_provider() -> None:
    assert [price(choice, 100_000, 0.06) for choice in CHOICES] == [1, 1.25, 2]
    assert [round(price(choice, 300, 0.06), 3) for choice in CHOICES] == [1, 0.169, 0.214]
    assert [round(price(choice, 301, 0.06), 3) for choice in CHOICES] == [1, 1.25, 0.214]
    assert [round(price(choice, 60, 1), 3) for choice in CHOICES] == [1, 1.25, 2]
    assert price("1h", 3_600, 0.06) < 1 < price("1h", 3_601, 0.06)


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({}, 0.138),
        ({"preset": "scenes"}, 0.24),
        ({"preset": "decay"}, 0.2),
        ({"preset": "diary"}, 0.356),
        ({"history": {"grow_messages": 1_000}}, 0.004),
        ({"history": {"grow_messages": 1, "edges": "every_message"}}, 0.837),
        ({"history": {"grow_messages": 0, "edges": "every_message"}}, 0.818),
    ],
)
def test_frequent_cuts_raise_the_share_of_new_tokens(settings: dict[str, Any], share: float) -> None:
    assert round(find_new_share(effective(settings).history), 3) == share


@pytest.mark.parametrize(("preset", "choice"), [("memo", "1h"), ("companion", "1h"), ("diary", "off")])
def test_a_history_that_is_cut_often_is_not_cached(preset: str, choice: CacheChoice) -> None:
    assert choice_in_effect(effective({"preset": preset}), [1_200] * 12 + [40_000] * 4) == choice


def test_a_chat_without_pauses_is_kept_for_five_minutes() -> None:
    assert choose((), 0.1) == choose((), 0.9) == "5m"


def test_each_choice_is_the_best_for_some_chat() -> None:
    assert choose([60] * MOST_PAUSES, 0.1) == "5m"
    assert choose([1_200] * MOST_PAUSES, 0.1) == "1h"
    assert choose([40_000] * MOST_PAUSES, 0.1) == "off"
    assert choose([60] * 8 + [1_200] * 8, 0.1) == "1h"
    assert choose([60] * 5 + [40_000] * 11, 0.1) == "5m"
    assert choose([60] * 4 + [40_000] * 12, 0.1) == "off"


def test_a_few_pauses_are_weighed_against_assumed_ones() -> None:
    assert choose([1_200], 0.1) == "off"
    assert choose([1_200] * 2, 0.1) == "1h"
    assert choose([60], 0.1) == "5m"
    assert choose([60], 0.4) == "off"
    assert choose([60] * 4 + [40_000] * 8, 0.1) == "5m", "with the assumed ones, five of sixteen are short"
    assert choose([60] * 4 + [40_000] * 12, 0.1) == "off"


@given(
    st.lists(st.sampled_from([5, 299, 300, 301, 3_600, 3_601, 86_400]), min_size=MOST_PAUSES, max_size=MOST_PAUSES),
    st.floats(0, 1),
)
def test_no_other_choice_costs_less(pauses_s: list[int], share: float) -> None:
    costs = {choice: sum(price(choice, pause_s, share) for pause_s in pauses_s) for choice in CHOICES}
    costs["off"] *= 0.96
    assert costs[choose(pauses_s, share)] == min(costs.values())


def test_the_last_16_pauses_are_kept_and_long_ones_shortened() -> None:
    head = head_with([*range(1, 20), 100_000])
    assert head.cursors == {"pauses": {"seen_s": [*range(5, 20), 86_400]}}


def test_a_pause_is_the_sum_of_the_silences_in_it() -> None:
    head = head_with([])
    note_pause(head, 200, ends=False)
    note_pause(head, 100, ends=False)
    assert find_ttl_s(head.settings, head.cursors) == 300
    note_pause(head, 50, ends=True)
    assert head.cursors == {"pauses": {"seen_s": [350]}}


def test_a_pause_under_a_second_is_not_recorded() -> None:
    head = head_with([])
    note_pause(head, 0.4, ends=True)
    note_pause(head, -5, ends=False)
    assert head.cursors == {}


@pytest.mark.parametrize(
    ("settings", "pauses_s", "ttl_s"),
    [
        ({}, [], 300),
        ({}, [1_200] * 4, 3_600),
        ({}, [40_000], 300),
        ({"cache": "off"}, [1_200] * 4, 300),
        ({"cache": "5m"}, [1_200] * 4, 300),
        ({"cache": "1h"}, [60], 3_600),
        ({"cache": "1h", "cache_ttl_s": 60}, [60], 60),
        ({"cache_ttl_s": 300}, [1_200] * 4, 300),
    ],
)
def test_a_ttl_that_is_not_set_follows_the_choice(settings: dict[str, Any], pauses_s: list[int], ttl_s: int) -> None:
    head = head_with(pauses_s, **settings)
    assert find_ttl_s(head.settings, head.cursors) == ttl_s
