"""Values that fit a JSON Schema, but for a place here and there that holds something wild.

What comes out is JSON text rather than a value, because some of what a server is sent no JSON library writes.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

Schema = Mapping[str, Any]
Make = Callable[[Schema], st.SearchStrategy[Any]]

WILD_TEXTS = (
    "",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff\ud800",
    "\x01\x1f\x7f\x9f",
    "\u202eright to left\u2066",
    "שלום مرحبا",
    "語" * 129,
    "🏮",
    "e\u0301\u200d\ufeff\uffff\U0010ffff",
    "x" * 201,
    "x" * 100_001,
    "../../etc/passwd",
    "'; DROP TABLE chats; --",
    "{0} %s ${a} \\u0000",
    "NaN",
    "null",
    "2026-04-01T12:00:00",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.999999-12:00",
    "2016-12-31T23:59:60Z",
    "00000000-0000-0000-0000-000000000000",
)
"""What breaks a parser, a database, a renderer or a limit."""

WILD_NUMBERS = (0, -1, 2**31 - 1, 2**31, 2**63, 2**64, 10**400, -(10**30), 0.5, 1e20, 1e308, -0.0, 5e-324)
UNNUMBERED = (float("nan"), float("inf"), float("-inf"))

_texts = st.sampled_from(WILD_TEXTS) | st.text(max_size=20)
_leaves = st.none() | st.booleans() | st.sampled_from((*WILD_NUMBERS, *UNNUMBERED)) | _texts
wild = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)
"""Anything that JSON can say, and some things that only its parsers accept."""


def nearly(schema: Schema, definitions: Schema) -> st.SearchStrategy[Any]:
    """Values of `schema`, in most of which something is wild; `definitions` are what its references lead to."""

    def make(inner: Schema) -> st.SearchStrategy[Any]:
        fitting = _fitting(inner, definitions, make)
        return st.integers(0, 11).flatmap(lambda chance: wild if chance == 0 else fitting)

    return make(schema)


def to_json(value: Any) -> bytes:
    """The value as JSON, lone surrogates escaped, NaN and Infinity as Python writes them."""
    return json.dumps(value).encode()


def _fitting(schema: Schema, definitions: Schema, make: Make) -> st.SearchStrategy[Any]:
    """Values of one schema, whose inner ones are made by `make`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return st.deferred(lambda: _fitting(definitions[name], definitions, make))
    if "anyOf" in schema:
        return st.one_of([_fitting(one, definitions, make) for one in schema["anyOf"]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kinds: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
        "object": lambda: _objects(schema, make),
        "array": lambda: st.lists(make(schema.get("items", {})), max_size=3),
        "string": lambda: _strings(schema),
        "integer": lambda: st.integers(schema.get("minimum", 0), min(schema.get("maximum", 100), 100)),
        "number": lambda: st.floats(schema.get("minimum", 0.5), schema.get("maximum", 1)),
        "boolean": st.booleans,
        "null": st.none,
    }
    return kinds[schema["type"]]() if "type" in schema else wild


def _objects(schema: Schema, make: Make) -> st.SearchStrategy[dict[str, Any]]:
    fields = {name: make(inner) for name, inner in schema.get("properties", {}).items()}
    required = set(schema.get("required", ()))
    known = st.fixed_dictionaries(
        {name: value for name, value in fields.items() if name in required},
        optional={name: value for name, value in fields.items() if name not in required},
    )
    if schema.get("additionalProperties"):
        return st.dictionaries(_texts, wild, max_size=3)
    strange = st.integers(0, 19).flatmap(lambda chance: st.dictionaries(_texts, wild, max_size=1 if chance == 0 else 0))
    return st.builds(lambda left, right: left | right, known, strange)


def _strings(schema: Schema) -> st.SearchStrategy[str]:
    if schema.get("format") == "date-time":
        return st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat())
    if schema.get("format") == "uuid":
        return st.uuids().map(str)
    if "pattern" in schema:
        return st.from_regex(str(schema["pattern"]))
    return st.text(min_size=schema.get("minLength", 0), max_size=min(schema.get("maxLength", 20), 20))
