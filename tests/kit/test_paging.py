from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.errors import Invalid
from app.kit.paging import decode_cursor, encode_cursor

KINDS = (int, str, datetime, UUID)

_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
_ints = st.integers(-(2**31) + 1, 2**31 - 1)
_times = st.datetimes(timezones=st.just(UTC))
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | _times.map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


def _forge(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode()


@given(st.lists(_ints | _texts | _times | st.uuids(), max_size=4))
def test_a_sort_key_comes_back_as_it_was(key: list[Any]) -> None:
    assert decode_cursor(encode_cursor(*key), *map(type, key)) == tuple(key)


@given(st.lists(_ints | _texts | _times | st.uuids(), min_size=1, max_size=4))
def test_a_cursor_goes_into_a_url_as_it_is(key: list[Any]) -> None:
    assert encode_cursor(*key).isascii()
    assert encode_cursor(*key).replace("-", "").replace("_", "").isalnum()


@given(
    st.text(st.characters()) | st.binary().map(_forge),
    st.sampled_from([kinds for count in (1, 2) for kinds in product(KINDS, repeat=count)]),
)
def test_any_text_is_refused_or_is_a_valid_cursor(cursor: str, kinds: tuple[type, ...]) -> None:
    _refuses_or_restores(cursor, kinds)


@given(st.lists(_json, min_size=1, max_size=2), st.data())
def test_a_forged_key_is_refused_or_of_the_kinds_asked_for(key: list[Any], data: st.DataObject) -> None:
    kinds = data.draw(st.tuples(*[st.sampled_from(KINDS)] * len(key)))
    _refuses_or_restores(encode_cursor(*key), kinds)


def _refuses_or_restores(cursor: str, kinds: tuple[type, ...]) -> None:
    try:
        key = decode_cursor(cursor, *kinds)
    except Invalid:
        return
    assert tuple(map(type, key)) == kinds
    for value in key:
        assert not isinstance(value, int) or abs(value) < 2**31
        assert not isinstance(value, str) or "\0" not in value
        assert not isinstance(value, datetime) or value.tzinfo is UTC


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, int),
        (True, int),
        (1.0, int),
        ("1", int),
        (2**31, int),
        (-(2**31), int),
        (5, str),
        (None, str),
        ("\0", str),
        (5, datetime),
        ("soon", datetime),
        ("2026-04-01T12:00:00", datetime),
        ("0001-01-01T00:00:00+14:00", datetime),
        (5, UUID),
        ([], UUID),
        ("5", UUID),
    ],
)
def test_values_that_postgresql_rejects_are_refused(value: object, kind: type) -> None:
    with pytest.raises(Invalid):
        decode_cursor(encode_cursor(value), kind)


@pytest.mark.parametrize(
    "cursor", ["", "=", "é", "\ud800", "a", encode_cursor(), encode_cursor(1, 2), _forge(b'{"0":1}')]
)
def test_a_cursor_of_another_shape_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid):
        decode_cursor(cursor, int)


def test_a_refusal_names_the_cursor() -> None:
    with pytest.raises(Invalid) as refused:
        decode_cursor("!", int)
    assert refused.value.errors == [{"loc": ["query", "cursor"], "msg": "not a cursor"}]


def test_a_time_of_any_zone_comes_back_in_utc() -> None:
    (at,) = decode_cursor(encode_cursor("2026-04-01T14:00:00+02:00"), datetime)
    assert at.isoformat() == "2026-04-01T12:00:00+00:00"


def test_a_deeply_nested_list_is_refused() -> None:
    with pytest.raises(Invalid):
        decode_cursor(_forge(b"[" * 100_000), int)
