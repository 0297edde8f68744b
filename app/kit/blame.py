"""How a validator of a whole model says which field is wrong. Pure."""

from collections.abc import Mapping
from typing import Any


class FieldError(ValueError):
    """A model's validator blames one of its fields; `path` leads there from the model."""

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.path = path


def place_of(found: Mapping[str, Any]) -> list[str | int]:
    """Where one of pydantic's errors is: where pydantic saw it, and the field that a model's validator blames."""
    cause = found.get("ctx", {}).get("error")
    return [*found["loc"], *(cause.path if isinstance(cause, FieldError) else ())]
