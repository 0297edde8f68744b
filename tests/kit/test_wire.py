import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from app.kit.wire import MAX_METADATA_BYTES, JsonObject, OrjsonResponse, Text, TimeZone, UtcDatetime

text: TypeAdapter[str] = TypeAdapter(Text)
json_object: TypeAdapter[dict[str, Any]] = TypeAdapter(JsonObject)
time_zone: TypeAdapter[str] = TypeAdapter(TimeZone)
moment: TypeAdapter[datetime] = TypeAdapter(UtcDatetime)

_any_text = st.lists(st.characters() | st.sampled_from(["\0", "\ud800", "\\", "u0000", '"']), max_size=6).map("".join)
_any_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | _any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_any_text, inner, max_size=3),
    max_leaves=8,
)


def _is_sound(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    if isinstance(value, list):
        return all(map(_is_sound, value))
    return value is None or all(_is_sound(key) and _is_sound(inner) for key, inner in value.items())


@given(_any_text)
def test_text_is_accepted_unless_it_has_nul_or_a_lone_surrogate(value: str) -> None:
    if _is_sound(value):
        assert text.validate_python(value) == value
    else:
        with pytest.raises(ValidationError, match=r"NUL character|lone surrogates"):
            text.validate_python(value)


@given(st.dictionaries(_any_text, _any_json, max_size=3))
def test_metadata_is_taken_as_it_is_unless_json_cannot_say_it(value: dict[str, Any]) -> None:
    if _is_sound(value):
        assert json_object.validate_python(value) == value
        assert orjson.loads(orjson.dumps(value)) == value
    else:
        with pytest.raises(ValidationError, match=r"plain JSON|NUL character"):
            json_object.validate_python(value)


def test_a_backslash_before_u0000_is_only_text() -> None:
    value = {"regex": "\\u0000", "\\\\u0000": "\\\\"}
    assert json_object.validate_python(value) == value


def test_metadata_may_take_16_kib_of_bytes_and_not_one_more() -> None:
    frame = len('{"a":""}')
    assert json_object.validate_python({"a": "x" * (MAX_METADATA_BYTES - frame)})
    assert json_object.validate_python({"a": "é" * ((MAX_METADATA_BYTES - frame) // 2)})
    for fill in ("x" * (MAX_METADATA_BYTES - frame + 1), "é" * (MAX_METADATA_BYTES // 2)):
        with pytest.raises(ValidationError, match="at most 16384 bytes"):
            json_object.validate_python({"a": fill})


@pytest.mark.parametrize("depth", [100, 200])
def test_metadata_may_be_nested(depth: int) -> None:
    assert json_object.validate_python(_nest(depth))


@pytest.mark.parametrize("depth", [1_000, 50_000])
def test_metadata_nested_beyond_reason_is_refused(depth: int) -> None:
    with pytest.raises(ValidationError, match="plain JSON"):
        json_object.validate_python(_nest(depth))


def _nest(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("value", [(1,), b"x", datetime.now(UTC), {1: 2}, {1, 2}, object()])
def test_metadata_rejects_python_only_types(value: object) -> None:
    with pytest.raises(ValidationError, match="plain JSON"):
        json_object.validate_python({"a": value})


@pytest.mark.parametrize("value", [[], "{}", None, 1])
def test_metadata_is_an_object(value: object) -> None:
    with pytest.raises(ValidationError):
        json_object.validate_python(value)


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Argentina/Buenos_Aires"])
def test_a_time_zone_is_one_of_the_iana_database(name: str) -> None:
    assert time_zone.validate_python(name) == name


@pytest.mark.parametrize(
    "name", ["", "localtime", "Mars/Olympus", "../UTC", "/etc/localtime", "+02:00", "UTC\0", "\ud800"]
)
def test_another_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="not a time zone"):
        time_zone.validate_python(name)


@given(st.datetimes(timezones=st.just(UTC)), st.integers(-23 * 60, 23 * 60))
def test_a_moment_is_converted_to_utc_from_any_time_zone(at: datetime, offset_minutes: int) -> None:
    zone = timezone(timedelta(minutes=offset_minutes))
    try:
        taken = moment.validate_python(at)
    except ValidationError:
        assert at.year in (1, 9999)
        return
    assert taken == moment.validate_python(taken.astimezone(zone)) == at
    assert taken.tzinfo is UTC


@pytest.mark.parametrize(
    "value", ["2026-04-01T12:00:00", "soon", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "10000-01-01"]
)
def test_a_moment_without_zone_or_out_of_range_is_rejected(value: str) -> None:
    with pytest.raises(ValidationError):
        moment.validate_python(value)


def test_an_answer_says_times_in_utc_and_uuids_as_text() -> None:
    noon = datetime(2026, 4, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    answer = OrjsonResponse({"at": noon.astimezone(UTC), "id": UUID(int=1), "text": "日本"})
    assert answer.headers["content-type"] == "application/json"
    assert orjson.loads(answer.body) == {
        "at": "2026-04-01T12:00:00Z",
        "id": "00000000-0000-0000-0000-000000000001",
        "text": "日本",
    }
