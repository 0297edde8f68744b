"""Validation errors in words that say what to do, with locations down to the field. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

_SHOULD = re.compile(r"^(Value error, |[A-Z][a-z]+ should )")
CHAT_ID_PATTERN = (
    r"^([A-Za-z0-9_:@-][A-Za-z0-9._:@-]{0,199}|\.[A-Za-z0-9_:@-][A-Za-z0-9._:@-]{0,198}|\.\.[A-Za-z0-9._:@-]{1,198})$"
)
"""A chat id: 1–200 characters, but not `.` or `..`, which clients remove from a URL."""

_WORDS = {
    r"\S": "must not be only white space",
    CHAT_ID_PATTERN: "must have 1 to 200 characters, each a letter from A to Z, a digit or one of . _ : @ -, and must "
    "not be . or ..",
}

_ANNOUNCED = frozenset({"card", "charactercard", "lorebook", "worldinfo", "proxy", "memoryproxy", "event", "webhook"})
"""Names in settings that belong to parts of the service which this version does not have yet (see `is_announced`)."""


MAX_EXPLAINED_ERRORS = 10_000
"""If a body has more errors, the answer has one error about the whole body instead of a list of them: each error that
pydantic explains takes 5 µs and a kilobyte."""

TOO_MANY_ERRORS = f"has more than {MAX_EXPLAINED_ERRORS} errors; they are not listed"


def refuse_many_errors(value: Any, validate: Callable[[Any], Any]) -> Any:
    """Return the validated value. Raises ValueError instead of a ValidationError with too many errors to explain."""
    try:
        return validate(value)
    except ValidationError as error:
        if error.error_count() > MAX_EXPLAINED_ERRORS:
            raise ValueError(TOO_MANY_ERRORS) from None
        raise


class FieldError(ValueError):
    """Raised by a model's validator for one of its fields; `path` is the field's location relative to the model."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def error_location(found: Mapping[str, Any]) -> list[str | int]:
    """Return the location of a pydantic error, extended by the field that a `FieldError` names."""
    cause = found.get("ctx", {}).get("error")
    return [*found["loc"], *(cause.path if isinstance(cause, FieldError) else ())]


def word_error(found: Mapping[str, Any]) -> str:
    """Return what is wrong in a pydantic error, as the end of a sentence that begins with the field."""
    limits = found.get("ctx", {})
    match found["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return _word_unknown(found["loc"])
        case "string_pattern_mismatch":
            return word_pattern(limits["pattern"])
        case "datetime_type" | "datetime_parsing" | "datetime_from_date_parsing" | "timezone_aware":
            return "must be a time with its time zone as in RFC 3339, such as 2026-05-28T18:30:00Z"
        case "string_too_short" | "too_short" if limits["min_length"] == 1:
            return "must not be empty"
        case "string_too_short" | "too_short":
            return f"must have at least {limits['min_length']} {_word_unit(found)}"
        case "string_too_long" | "too_long":
            return f"must have at most {limits['max_length']} {_word_unit(found)}"
        case _:
            return _SHOULD.sub(lambda start: "" if start[0].startswith("Value error") else "must ", found["msg"])


def _word_unit(found: Mapping[str, Any]) -> str:
    """Return the unit of a limit of length: characters for a text, items for a list.

    The type of the error is not enough to decide: if a text has validators of its own, pydantic reports the same type
    for it as for a list.
    """
    is_text = found["type"].startswith("string") or isinstance(found.get("input"), str)
    return "characters" if is_text else "items"


def _word_unknown(loc: tuple[str | int, ...]) -> str:
    *_, section, name = ("", *loc)
    if section == "settings" and is_announced(str(name)):
        return (
            "belongs to a part of the service that this version does not have yet; GET /v1/presets lists all settings"
        )
    return "is not a known field"


def is_announced(name: str) -> bool:
    """Return whether a name in settings belongs to a part of the service that this version does not have yet.

    The case, `_` and `-`, and an `s` at the end make no difference, because the names are not fixed yet.
    """
    return name.casefold().replace("_", "").replace("-", "").removesuffix("s") in _ANNOUNCED


def word_pattern(pattern: str) -> str:
    """Return what is wrong with a value that does not match `pattern`, as the end of a sentence."""
    return _WORDS.get(pattern, f"must have the form {pattern}")
