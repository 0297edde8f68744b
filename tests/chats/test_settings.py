from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from app.chats.presets import PRESET_TEXTS, PRESETS
from app.chats.settings import (
    Budget,
    PresetName,
    check_overrides,
    effective,
    effective_json,
    merge,
    schema,
    still_valid,
)
from app.memos.settings import MemoSettings
from tests.layers.samples import SAMPLES

Path = tuple[str, ...]


def _paths(section: type[BaseModel], *, sections: bool) -> Iterator[Path]:
    """The ways to every setting, or to every section of them."""
    if sections:
        yield ()
    for name, described in section.model_fields.items():
        inner = described.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from ((name, *path) for path in _paths(inner, sections=sections))
        elif not sections:
            yield (name,)


SETTINGS = list(_paths(schema().whole, sections=False))
SECTIONS = list(_paths(schema().whole, sections=True))


def _nest(path: Path, value: Any) -> dict[str, Any]:
    """`value` at the end of a way."""
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def _at(settings: BaseModel, path: Path) -> Any:
    value: Any = settings
    for name in path:
        value = getattr(value, name)
    return value


def _dotted(path: Path) -> str:
    return ".".join(path) or "settings"


# --- Presets -----------------------------------------------------------------------------------------

# The settings in which presets differ, one row each.
TABLE: dict[str, tuple[Any, Any, Any, Any, Any, Any]] = {
    # memo, diary, scenes, agent, decay, companion
    "history.keep_messages": (16, 15, 16, 16, 20, 16),
    "history.grow_messages": (16, 5, 0, 16, 10, 16),
    "history.max_messages": (None, None, 200, None, None, None),
    "history.keep_scenes": (2, 2, 2, 2, 2, 2),
    "history.edges": ("batches", "folds", "scenes", "every_8", "every_message", "batches"),
    "consolidation.enabled": (False, False, False, True, True, True),
    "consolidation.every_turns": (5, 5, 5, 1, 5, 5),
    "recall.mode": ("off", "off", "off", "auto", "auto", "tool"),
    "timestamps": ("off", "inline", "off", "off", "off", "inline"),
    "time": (False,) * 6,
    "context_tokens": (32_000,) * 6,
    "token_factor": (1.0,) * 6,
    "cache": ("auto",) * 6,
    "cache_ttl_s": (300,) * 6,
} | {setting: values for sample in SAMPLES.values() for setting, values in sample.in_presets.items()}


@pytest.mark.parametrize("setting", TABLE)
def test_each_preset_has_the_values_of_the_table(setting: str) -> None:
    path = tuple(setting.split("."))
    assert tuple(_at(effective({"preset": name}), path) for name in PRESETS) == TABLE[setting]


def test_there_are_six_presets_with_texts_and_a_default() -> None:
    assert list(PRESETS) == list(get_args(PresetName)) == list(PRESET_TEXTS)
    assert effective({}) == effective({"preset": "memo"}) == schema().whole()


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_valid_request(name: str) -> None:
    assert schema().patch.model_validate(PRESETS[name]).model_dump(exclude_unset=True) == PRESETS[name]
    assert effective({"preset": name}).preset == name


@pytest.mark.parametrize(
    ("overrides", "max_messages"),
    [
        ({}, 64),
        ({"memos": {"every_messages": 40}}, 72),
        ({"history": {"keep_messages": 4, "grow_messages": 0}}, 36),
        ({"history": {"max_messages": 50}}, 50),
        ({"preset": "scenes"}, 200),
        ({"preset": "decay"}, 62),
    ],
)
def test_a_cut_is_forced_at_keep_and_grow_and_at_least_32_more(overrides: dict[str, Any], max_messages: int) -> None:
    assert effective(overrides).max_messages == max_messages


# --- Merging -----------------------------------------------------------------------------------------

_names = st.sampled_from(["a", "b", "type", "value"])
_values = st.recursive(
    st.none() | st.integers(0, 3) | st.lists(st.none() | st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(_names, inner, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(_names, _values, max_size=4)


def _merge_patch(target: Any, patch: Any) -> Any:
    """The algorithm of RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = _merge_patch(target.get(name), value)
    return target


@given(_objects, _objects)
def test_settings_are_merged_as_rfc_7396_defines(old: dict[str, Any], patch: dict[str, Any]) -> None:
    before = deepcopy((old, patch))
    assert merge(old, patch) == _merge_patch(deepcopy(old), patch)
    assert (old, patch) == before


@pytest.mark.parametrize("path", SETTINGS, ids=_dotted)
@pytest.mark.parametrize("name", PRESETS)
def test_null_returns_to_the_presets_value(name: str, path: Path) -> None:
    default = effective({"preset": name})
    # Another preset's values everywhere, so that there is something to return from.
    stored = effective({"preset": "diary" if name == "scenes" else "scenes"}).model_dump(mode="json")
    stored = merge(stored, {"preset": name, "history": {"keep_messages": 1, "grow_messages": 1}})
    after = merge(stored, schema().patch.model_validate(_nest(path, None)).model_dump(exclude_unset=True))
    kept = "memo" if path == ("preset",) else _at(default, path)
    assert _at(effective(after), path) == kept


@pytest.mark.parametrize("path", SECTIONS[1:], ids=_dotted)
def test_null_for_a_section_returns_all_of_it(path: Path) -> None:
    stored = {"preset": "companion", **effective({"preset": "diary"}).model_dump(exclude={"preset"}, mode="json")}
    after = merge(stored, schema().patch.model_validate(_nest(path, None)).model_dump(exclude_unset=True))
    assert _at(effective(after), path) == _at(effective({"preset": "companion"}), path)


def test_a_chat_keeps_its_own_values_when_it_changes_its_preset() -> None:
    stored = merge({"memos": {"window": 3}}, {"preset": "diary", "history": {"grow_messages": 7}})
    settings = effective(stored)
    assert (MemoSettings.of(settings).window, settings.history.grow_messages) == (3, 7)
    assert (MemoSettings.of(settings).enabled, settings.history.keep_messages) == (False, 15)


def test_a_budget_is_replaced_as_a_whole_and_null_takes_it_away() -> None:
    stored = merge({}, {"memos": {"budget": {"type": "percent", "value": 10}}})
    stored = merge(stored, {"memos": {"budget": {"type": "absolute", "value": 900}}})
    assert MemoSettings.of(effective(stored)).budget == Budget(type="absolute", value=900)
    assert MemoSettings.of(effective(merge(stored, {"memos": {"budget": None}}))).budget is None


@given(st.sampled_from(list(PRESETS)), st.integers(1, 64), st.none() | st.integers(0, 99))
def test_settings_are_the_same_from_memory(name: str, every: int, percent: int | None) -> None:
    budget = None if percent is None else {"type": "percent", "value": percent}
    overrides = merge({}, {"preset": name, "memos": {"every_messages": every, "budget": budget}})
    stored = orjson.dumps(overrides).decode()
    assert effective_json(stored) == effective_json(stored) == effective(overrides)


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        ({"of_old": 1, "token_factor": 1.35}, {"token_factor": 1.35}),
        ({"memos": {"of_old": {"a": 1}, "window": 3}}, {"memos": {"window": 3}}),
        ({"memos": {"every_messages": 65, "window": 3}}, {"memos": {"window": 3}}),
        ({"memos": {"budget": {"type": "percent"}, "window": 3}}, {"memos": {"window": 3}}),
        (
            {"memos": {"budget": {"type": "percent", "value": 5, "of": 1}}},
            {"memos": {"budget": {"type": "percent", "value": 5}}},
        ),
        ({"memos": [], "preset": "diary"}, {"preset": "diary"}),
        ({"preset": "of_old", "time": True}, {"time": True}),
        ({"history": {"keep_messages": 30, "max_messages": 40}}, {"history": {"keep_messages": 30}}),
        ({"preset": "scenes", "history": {"keep_messages": 300}}, {"preset": "scenes"}),
    ],
)
def test_only_invalid_stored_settings_are_ignored(
    stored: dict[str, Any], kept: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert still_valid(stored) == kept
    assert effective(stored) == effective_json(orjson.dumps(stored).decode()) == check_overrides(kept)
    assert caplog.messages
    assert all("65" not in message and "300" not in message for message in caplog.messages)


# --- What is refused ---------------------------------------------------------------------------------


def _blamed(value: Mapping[str, Any], model: type[BaseModel] | None = None) -> list[tuple[Any, ...]]:
    with pytest.raises(ValidationError) as refused:
        (model or schema().patch).model_validate(value)
    return [error["loc"] for error in refused.value.errors()]


@pytest.mark.parametrize("path", SECTIONS, ids=_dotted)
@pytest.mark.parametrize("model", [schema().patch, schema().whole])
def test_an_unknown_key_is_refused_at_every_depth_and_named(model: type[BaseModel], path: Path) -> None:
    assert _blamed(_nest((*path, "no_such"), 1), model) == [(*path, "no_such")]
    assert _blamed(_nest((*path, "no_such"), None), model) == [(*path, "no_such")]


def test_a_budget_has_exactly_a_type_and_a_value() -> None:
    assert _blamed({"memos": {"budget": {"type": "percent"}}}) == [("memos", "budget", "value")]
    assert _blamed({"memos": {"budget": {"value": 1}}}) == [("memos", "budget", "type")]
    assert _blamed({"pinned": {"budget": {"type": "absolute", "value": 1, "of": 2}}}) == [("pinned", "budget", "of")]


@pytest.mark.parametrize("path", SETTINGS, ids=_dotted)
def test_invalid_values_are_rejected_for_each_setting(path: Path) -> None:
    rubbishes: tuple[Any, ...] = ("\0", [], {"a": 1})
    for rubbish in rubbishes:
        assert all(loc[: len(path)] == path for loc in _blamed(_nest(path, rubbish)))
        assert all(loc[: len(path)] == path for loc in _blamed(_nest(path, rubbish), schema().whole))


@pytest.mark.parametrize(
    ("path", "below", "least", "most", "above"),
    [
        ("memos.every_messages", 0, 1, 64, 65),
        ("memos.window", -1, 0, 200, 201),
        ("history.keep_messages", 0, 1, 2_000, 2_001),
        ("scenes.auto_hide", -2, -1, 1_000, 1_001),
        ("sessions.daily_reset_hour", -1, 0, 23, 24),
        ("token_factor", float("nan"), 0.1, 10, float("inf")),
    ],
)
def test_numbers_have_bounds(path: str, below: float, least: float, most: float, above: float) -> None:
    way = tuple(path.split("."))
    for value in (least, most):
        assert (
            _at(effective(schema().patch.model_validate(_nest(way, value)).model_dump(exclude_unset=True)), way)
            == value
        )
    for value in (below, above):
        assert _blamed(_nest(way, value)) == [way]


def test_a_request_accepts_exactly_the_existing_settings() -> None:
    request = schema().patch.model_json_schema()["$defs"] | {"all": schema().patch.model_json_schema()}
    whole = schema().whole.model_json_schema()["$defs"] | {"all": schema().whole.model_json_schema()}
    for name, section in whole.items():
        patch = request["all" if name == "all" else name if name == "Budget" else f"{name}Patch"]
        assert list(patch["properties"]) == list(section["properties"])
        assert all(described["description"] for described in patch["properties"].values())


@pytest.mark.parametrize(("value", "context_tokens", "tokens"), [(10, 32_000, 3_200), (10, 999, 99), (0, 999, 0)])
def test_a_share_of_the_context_is_rounded_down(value: int, context_tokens: int, tokens: int) -> None:
    assert Budget(type="percent", value=value).tokens(context_tokens) == tokens
    assert Budget(type="absolute", value=value).tokens(context_tokens) == value


def test_settings_never_change_in_place() -> None:
    settings = effective({})
    with pytest.raises(ValidationError):
        MemoSettings.of(settings).window = 3  # type: ignore[misc]  # that is the point
