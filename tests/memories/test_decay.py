from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memories.decay import order_key, strength

NOW = datetime(2026, 4, 1, tzinfo=UTC)
DAY = timedelta(days=1)

importances = st.floats(0.01, 1)
ages_days = st.floats(-30, 400)
half_lives = st.floats(1, 365)


@pytest.mark.parametrize(
    ("importance", "age_days", "left"),
    [(0.8, 0, 0.8), (0.8, 7, 0.4), (0.8, 14, 0.2), (1, 3.5, 0.5**0.5), (0, 7, 0), (0.8, -7, 1.6)],
)
def test_after_a_half_life_half_is_left(importance: float, age_days: float, left: float) -> None:
    assert strength(importance, age_days) == pytest.approx(left)


@given(importances, ages_days, half_lives)
def test_strength_is_halved_step_by_step(importance: float, age_days: float, half_life_days: float) -> None:
    slow = importance
    whole, rest = divmod(age_days / half_life_days, 1)
    for _ in range(abs(int(whole))):
        slow = slow / 2 if whole > 0 else slow * 2
    slow *= 0.5**rest
    assert strength(importance, age_days, half_life_days=half_life_days) == pytest.approx(slow)


@given(importances, ages_days, importances, ages_days, half_lives, st.integers(0, 2_000))
def test_the_key_orders_like_the_strength_at_any_time(
    one: float, one_days: float, other: float, other_days: float, half_life_days: float, later_days: int
) -> None:
    def key(importance: float, age_days: float) -> float:
        return order_key(importance, NOW - age_days * DAY, half_life_days=half_life_days)

    def left(importance: float, age_days: float) -> float:
        return strength(importance, age_days + later_days, half_life_days=half_life_days)

    difference = key(one, one_days) - key(other, other_days)
    if abs(difference) > 1e-6 and left(one, one_days) and left(other, other_days):
        assert (difference > 0) == (left(one, one_days) > left(other, other_days))


@given(importances, ages_days, st.floats(0.01, 1))
def test_a_floor_compares_as_a_minimum_key(importance: float, age_days: float, floor: float) -> None:
    key, least = order_key(importance, NOW - age_days * DAY), order_key(floor, NOW)
    if abs(key - least) > 1e-6:
        assert (key > least) == (strength(importance, age_days) > floor)


def test_a_memory_without_importance_comes_last() -> None:
    assert order_key(0, NOW) < order_key(0.001, NOW - 3_000 * DAY)


@pytest.mark.parametrize("half_life_days", [0, -1, float("nan")])
def test_a_half_life_is_positive(half_life_days: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        strength(0.5, 1, half_life_days=half_life_days)
    with pytest.raises(ValueError, match="positive"):
        order_key(0.5, NOW, half_life_days=half_life_days)
