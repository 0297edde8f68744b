"""A bucket lets a burst through, then a steady rate, whatever the clock does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.keys.token_bucket import LocalBuckets, Rate

NOW_S = 1_775_000_000.0

_rates = st.builds(Rate, st.sampled_from([0.5, 1, 3, 50]), st.sampled_from([1, 2.5, 4, 200]))
_steps = st.lists(st.sampled_from([0.0, 0.01, 0.4, 1.0, 7.0]), max_size=80)


@given(_rates, _steps)
def test_requests_never_exceed_the_burst_and_the_rate(rate: Rate, steps: list[float]) -> None:
    buckets, passed, now_s = LocalBuckets(max_entries=9), 0, NOW_S
    for step_s in steps:
        now_s += step_s
        passed += buckets.take("ann", rate, now_s) == 0
        assert passed <= rate.burst + (now_s - NOW_S) * rate.per_s + 1e-3


@given(_rates, _steps)
def test_a_request_passes_after_the_wait_it_was_given(rate: Rate, steps: list[float]) -> None:
    buckets, now_s = LocalBuckets(max_entries=9), NOW_S
    for step_s in steps:
        now_s += step_s
        if wait_s := buckets.take("ann", rate, now_s):
            assert wait_s <= rate.interval_s + 1e-5
            now_s += wait_s
            assert buckets.take("ann", rate, now_s) == 0


@given(_rates, _steps)
def test_requests_within_the_rate_are_never_refused(rate: Rate, steps: list[float]) -> None:
    buckets, now_s = LocalBuckets(max_entries=9), NOW_S
    for step_s in steps:
        now_s += step_s + rate.interval_s
        assert buckets.take("ann", rate, now_s) == 0


def test_names_have_buckets_of_their_own() -> None:
    buckets, rate = LocalBuckets(max_entries=9), Rate(1, 1)
    assert buckets.take("ann", rate, NOW_S) == 0
    assert buckets.take("ann", rate, NOW_S) == pytest.approx(1)
    assert buckets.take("bob", rate, NOW_S) == 0


@pytest.mark.parametrize("step_s", [-3_600.0, 3_600.0])
def test_a_clock_jump_delays_a_request_by_an_interval_at_most(step_s: float) -> None:
    buckets, rate = LocalBuckets(max_entries=9), Rate(2, 4)
    for _ in range(9):
        buckets.take("ann", rate, NOW_S)
    assert buckets.take("ann", rate, NOW_S + step_s) <= rate.interval_s
    assert buckets.take("ann", rate, NOW_S + step_s + rate.interval_s) == 0


def test_the_bucket_used_first_makes_room() -> None:
    buckets, rate = LocalBuckets(max_entries=2), Rate(1, 1)
    for name in ("ann", "bob", "eve"):
        assert buckets.take(name, rate, NOW_S) == 0
    assert buckets.take("eve", rate, NOW_S) > 0
    assert buckets.take("bob", rate, NOW_S) > 0
    assert buckets.take("ann", rate, NOW_S) == 0
