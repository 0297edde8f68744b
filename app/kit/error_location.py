"""Locations of validation errors, down to the field. Pure."""

from collections.abc import Mapping
from typing import Any


class FieldError(ValueError):
    """Raised by a model's validator for one of its fields; `path` is the field's location relative to the model."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def error_location(found: Mapping[str, Any]) -> list[str | int]:
    """Return the location of a pydantic error, extended by the field that a `FieldError` names."""
    cause = found.get("ctx", {}).get("error")
    return [*found["loc"], *(cause.path if isinstance(cause, FieldError) else ())]
