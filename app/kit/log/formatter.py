"""Writes log records as JSON.

The message of an error can contain a user's text: PostgreSQL quotes the row that violates a constraint, and a parser
quotes the text that it could not parse. So only the type, the SQLSTATE or code, and the traceback of an error are
written.
"""

import logging
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import asyncpg
import orjson

from app.kit.errors import AppError
from app.kit.log.fields import current_fields

log = logging.getLogger(__name__)

_MAX_FRAMES = 30
_WORDS = re.compile(r"[\w .]*")


class JsonFormatter(logging.Formatter):
    """Formats a record as a line of JSON: time, level, logger, message, error, fields of the task and the record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **current_fields(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and (error := record.exc_info[1]):
            line["error"] = [describe(one) for one in _chain(error)]
            line["traceback"] = [frame for one in _chain(error) for frame in _frames(one)]
        return orjson.dumps(line, default=str).decode()


class OneTraceback(logging.Filter):
    """Drops uvicorn's record of an error in the application, which has logged the error already."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is kept."""
        return not record.exc_info


def configure_logging(level: str) -> None:
    """Log to stderr: the service at `level`, libraries at `warning`, and errors that Python would print itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("app").setLevel(level.upper())
    uvicorn = logging.getLogger("uvicorn.error")
    uvicorn.setLevel(logging.WARNING)
    uvicorn.filters[:] = [OneTraceback()]
    sys.excepthook = _log_exit
    sys.unraisablehook = _log_unraisable
    threading.excepthook = _log_thread


def _log_exit(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log an error that ends the process. Ctrl-C does not count as an error."""
    if isinstance(error, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("the process ends because of an error", exc_info=(kind, error, trace))


def _log_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Log an error that has no caller, as in `__del__`. The object is not logged, as its repr can have any text."""
    error = unraisable.exc_value
    log.error(
        "an error could not be raised",
        exc_info=None if error is None else (unraisable.exc_type, error, unraisable.exc_traceback),
    )


def _log_thread(raised: threading.ExceptHookArgs) -> None:
    """Log an error that ends a thread."""
    error = raised.exc_value
    if error is not None and not isinstance(error, SystemExit):
        log.error("a thread ends because of an error", exc_info=(raised.exc_type, error, raised.exc_traceback))


def _message(record: logging.LogRecord) -> str:
    """Return the message. Of asyncio's messages, return only the first words: the rest can contain any value."""
    text = record.getMessage()
    if record.name != "asyncio" or (words := _WORDS.match(text)) is None:
        return text
    return words[0].strip()


def describe(error: BaseException) -> str:
    """Return the type of an error, with the SQLSTATE of PostgreSQL's errors and the code of the service's own."""
    name = type(error).__name__
    if isinstance(error, asyncpg.PostgresError):
        return f"{name} ({error.sqlstate})"
    return f"{name}: {error.code}" if isinstance(error, AppError) else name


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _frames(error: BaseException) -> Iterator[str]:
    """Yield where an error was raised: file, line and function of each frame."""
    for frame in traceback.extract_tb(error.__traceback__, limit=-_MAX_FRAMES):
        yield f"{frame.filename}:{frame.lineno} in {frame.name}"
