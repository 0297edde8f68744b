"""What a provider charges for calls that share a beginning."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.chats.prompt_cache import CacheChoice
from app.demo.bill import Account, Bill, Call
from tests.conftest import NOON


def call(system: str, *said: str) -> Call:
    """A call of one system block and some messages of 100 tokens each, marked after the system and at the end."""
    blocks = (("system", system), *(("user", text) for text in said))
    marks = ((1, 100), (len(blocks), 100 * len(blocks)))
    return Call(blocks, marks, prefix_blocks=1, tokens=100 * len(blocks), at=NOON)


def test_the_first_call_is_written_whole() -> None:
    bill = Bill().add(call("s", "a"), None)
    assert bill == Bill(read=0, written=200, plain=0)
    assert bill.cost == 250


def test_a_cache_write_for_an_hour_costs_twice_as_much() -> None:
    bill = Bill().add(replace(call("s", "a"), cache="1h"), None)
    assert bill == Bill(written_1h=200)
    assert bill.cost == 400
    assert bill.tokens == 200


def test_a_repeated_prefix_is_read_from_the_cache() -> None:
    bill = Bill().add(call("s", "a", "b", "c"), call("s", "a"))
    assert bill == Bill(read=200, written=200)
    assert bill.cost == 270
    assert bill.tokens == 400


def test_a_history_with_a_new_start_is_cached_up_to_its_mark() -> None:
    assert Bill().add(call("s", "b", "c"), call("s", "a", "b")) == Bill(read=100, written=200)


def test_a_different_prefix_is_not_found_in_the_cache() -> None:
    assert Bill().add(call("t", "a"), call("s", "a")) == Bill(written=200)


def test_a_place_that_was_not_marked_is_not_found() -> None:
    assert Bill().add(call("s", "a", "b"), replace(call("s", "a"), marks=((1, 100),))).read == 100


def test_text_after_the_last_mark_has_the_plain_price() -> None:
    assert Bill().add(replace(call("s", "a", "b"), marks=((1, 100),)), None) == Bill(written=100, plain=200)


def test_a_sliding_window_caches_only_its_prefix() -> None:
    account = Account()
    account.add(call("s", "a"))
    account.add(call("s", "a", "b"))
    assert account.at_once.sliding == Bill(read=100, written=100, plain=300)
    assert account.at_once.anchored == Bill(read=200, written=300)
    assert account.at_once.sliding.tokens == account.at_once.anchored.tokens


@pytest.mark.parametrize(
    ("cache", "minutes", "read", "cold"), [("5m", 5, 200, 0), ("5m", 6, 0, 1), ("1h", 60, 200, 0), ("1h", 61, 0, 1)]
)
def test_a_long_pause_empties_the_cache(cache: CacheChoice, minutes: int, read: int, cold: int) -> None:
    account = Account()
    account.add(replace(call("s", "a"), cache=cache))
    account.add(replace(call("s", "a", "b"), at=NOON + timedelta(minutes=minutes)))
    assert account.at_once.anchored.read == 200
    assert account.with_pauses.anchored.read == read
    assert (account.calls, account.cold) == (2, cold)


def test_a_context_is_read_block_by_block_with_its_breakpoints() -> None:
    marked: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
    context = {
        "tokens": 60,
        "system": [{"type": "text", "text": "s", **marked}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "c", **marked}]},
        ],
        "breakpoints": [{"after": "segment:user", "tokens": 20}, {"after": "message:c", "tokens": 60}],
    }
    assert Call.of(context, NOON) == Call(
        blocks=(("system", "s"), ("user", "a"), ("user", "b"), ("assistant", "c")),
        marks=((1, 20), (4, 60)),
        prefix_blocks=1,
        tokens=60,
        at=NOON,
    )


@pytest.mark.parametrize(
    ("control", "cache"), [({}, "off"), ({"type": "ephemeral"}, "5m"), ({"type": "ephemeral", "ttl": "1h"}, "1h")]
)
def test_a_call_knows_how_long_it_is_kept(control: dict[str, Any], cache: CacheChoice) -> None:
    marked = {"cache_control": control} if control else {}
    breakpoints = [{"after": "segment:user", "tokens": 20}] if control else []
    system = [{"type": "text", "text": "s", **marked}]
    context = {"tokens": 20, "system": system, "messages": [], "breakpoints": breakpoints}
    assert Call.of(context, NOON).cache == cache
