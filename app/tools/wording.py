"""What a model is told: the tools as each format lists them, and what was wrong with a call's arguments. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson

Format = Literal["openai", "anthropic"]

_TOLD = ("type", "description", "enum", "items", "default")
"""What of a field's schema a model is told.

Lengths and patterns stand in words in its description: servers that turn a schema into a grammar take them literally,
and some of them fail on it.
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
"""What a model is told of the errors that pydantic finds, by their kinds; of others what pydantic says."""


def word_tool(name: str, description: str, schema: Mapping[str, Any], format_: Format) -> dict[str, Any]:
    """A tool as a request to the provider lists it; `schema` is the JSON schema of its arguments."""
    parameters = {
        "type": "object",
        "properties": {
            field: {key: told[key] for key in _TOLD if key in told} for field, told in schema["properties"].items()
        },
        "required": list(schema.get("required", ())),
        "additionalProperties": False,
    }
    if format_ == "anthropic":
        return {"name": name, "description": description, "input_schema": parameters}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def word_wrong(name: str, errors: Sequence[Mapping[str, Any]], example: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call, and how to call the tool; `errors` are pydantic's."""
    wrong = "; ".join(word_error(error) for error in errors)
    return f"{wrong}. Call {name} with {orjson.dumps(example).decode()}."


def word_error(error: Mapping[str, Any]) -> str:
    """One thing that is wrong, in one of pydantic's errors, without repeating what was given."""
    field, kind = str(error["loc"][-1]), error["type"]
    if kind == "value_error":
        return f"{field} {str(error['msg']).removeprefix('Value error, ')}"
    return _WRONG.get(kind, "{field}: {msg}").format(field=field, msg=error["msg"], **error.get("ctx", {}))
