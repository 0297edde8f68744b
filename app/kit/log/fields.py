"""Fields that every log line of a task has: the id of the request, or the id of the work item."""

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

_fields: ContextVar[Mapping[str, str]] = ContextVar("log_fields", default=_NONE)


def set_fields(**fields: str) -> None:
    """Set the fields of all log lines of this task, and of the tasks that it starts from now on."""
    _fields.set(fields)


def current_fields() -> Mapping[str, str]:
    """Return the fields of this task."""
    return _fields.get()
