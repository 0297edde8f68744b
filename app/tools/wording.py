"""The texts of tools: their declarations in each format, the errors of arguments, and the effects of calls. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson

from app.bindings.rule import quote
from app.kit.validation_errors import error_location, word_error

Format = Literal["openai", "anthropic"]

CallStatus = Literal["open", "shown", "hidden", "dropped"]

_STATUSES: Mapping[CallStatus, str] = {
    "open": "It is open until its reply is appended.",
    "shown": "Its reply has the same text.",
    "hidden": "It is hidden, because its reply has another text, is deleted or is hidden.",
    "dropped": "It was dropped: its generation was discarded, or its reply was cut off.",
}

_SCHEMA_KEYS = ("type", "description", "enum", "items", "default")
"""The keywords of a field's schema that are sent to a model.

Lengths and patterns are in the field's description only. Servers that turn a schema into a grammar would apply lengths
and patterns literally, and some servers would fail.
"""

_WRONG = {
    "json_invalid": "The arguments are not valid JSON",
    "model_type": "The arguments must be one JSON object",
    "model_attributes_type": "The arguments must be one JSON object",
    "missing": "{field} is missing",
    "extra_forbidden": "There is an argument that the tool does not take",
    "string_type": "{field} must be a string",
    "string_pattern_mismatch": "{field} is empty",
    "string_too_short": "{field} is empty",
    "too_short": "{field} is empty",
    "string_too_long": "{field} is too long: at most {max_length:,} characters",
    "too_long": "{field} is too long: at most {max_length:,} characters",
}
"""The messages for pydantic's errors, by type; `word_error` words the others."""


def word_tool(name: str, description: str, schema: Mapping[str, Any], format_: Format) -> dict[str, Any]:
    """Return the declaration of a tool in a request to the provider; `schema` is the JSON Schema of its arguments."""
    parameters = {
        "type": "object",
        "properties": {
            field: {key: described[key] for key in _SCHEMA_KEYS if key in described}
            for field, described in ((name, _flat(given)) for name, given in schema["properties"].items())
        },
        "required": list(schema.get("required", ())),
        "additionalProperties": False,
    }
    if format_ == "anthropic":
        return {"name": name, "description": description, "input_schema": parameters}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _flat(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a field without the alternative null, because an optional argument can be left out."""
    found: dict[str, Any] = dict(described)
    for one in described.get("anyOf", ()):
        if one != {"type": "null"}:
            found |= {key: value for key, value in one.items() if key not in described}
    return found


def word_wrong(name: str, errors: Sequence[Mapping[str, Any]], example: Mapping[str, Any]) -> str:
    """Return the errors of a call's arguments, with an example of a valid call; `errors` are pydantic's."""
    wrong = "; ".join(word_argument_error(error) for error in errors)
    return f"{wrong}. Call {name} with {orjson.dumps(example).decode()}."


def word_argument_error(error: Mapping[str, Any]) -> str:
    """Return the message for one of pydantic's errors, without the rejected value."""
    field, kind = str(error_location(error)[-1]), error["type"]
    known = _WRONG.get(kind)
    return known.format(field=field, **error.get("ctx", {})) if known else f"{field} {word_error(error)}"


def status_of(is_open: bool, matches: bool) -> CallStatus:
    """Return the status of a call; `matches` is whether its reply is visible and has the text of the binding."""
    return "open" if is_open else "shown" if matches else "hidden"


def word_effect(written: str, status: CallStatus) -> str:
    """Return the effect of a call: what it wrote, and whether that is shown now."""
    return f"{written}. {_STATUSES[status]}"


def word_answered(outcome: Literal["wrote", "read", "refused"], answer: str | None) -> str:
    """Return the effect of a call that has no binding, with the beginning of its answer unless that is None."""
    answered = f" The answer was {quote(answer)}." if answer is not None else ""
    match outcome:
        case "read":
            return f"It only read.{answered}"
        case "refused":
            return f"It was refused, so nothing has changed.{answered}"
    return f"{_STATUSES['dropped']}{answered}"
