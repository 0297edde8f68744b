from datetime import datetime, timedelta

from app.keys.expiring import ExpiringCache
from tests.conftest import NOON


def seconds(count: float) -> datetime:
    return NOON + timedelta(seconds=count)


def test_a_value_lasts_its_time_and_no_longer() -> None:
    cache = ExpiringCache[str](ttl_s=5, max_entries=2)
    cache.put("a", "one", NOON)
    assert cache.get("a", seconds(4.9)) == "one"
    assert cache.get("a", seconds(5)) is None
    assert cache.get("b", NOON) is None


def test_a_clock_that_is_set_back_makes_nothing_last_longer() -> None:
    cache = ExpiringCache[str](ttl_s=5, max_entries=2)
    cache.put("a", "one", NOON)
    assert cache.get("a", seconds(-1)) is None


def test_the_oldest_entry_is_dropped_from_a_full_cache() -> None:
    cache = ExpiringCache[str](ttl_s=5, max_entries=2)
    for name in ("a", "b", "a", "c"):
        cache.put(name, name, NOON)
    assert [cache.get(name, NOON) for name in ("a", "b", "c")] == ["a", None, "c"]


def test_the_cache_can_be_cleared() -> None:
    cache = ExpiringCache[str](ttl_s=5, max_entries=2)
    cache.put("a", "one", NOON)
    cache.clear()
    assert cache.get("a", NOON) is None
