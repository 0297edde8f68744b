"""Errors that carry their HTTP status.

AppError
├── Unauthorized             401  kit/auth.py
├── Forbidden                403  kit/auth.py
│   └── LoopbackOnly              keys/errors.py
├── NotFound                 404
│   ├── ChatNotFound              chats/errors.py
│   ├── LineNotFound              chats/errors.py
│   ├── MessageNotFound           chats/errors.py
│   ├── SwipeNotFound             chats/errors.py
│   ├── CheckpointNotFound        chats/errors.py
│   ├── VersionNotFound           narratives/errors.py
│   ├── ToolNotFound              tools/errors.py
│   ├── KeyNotFound               keys/errors.py
│   └── WorkNotFound              operations/routes.py
├── Conflict                 409
│   ├── MessageIdTaken            chats/errors.py
│   ├── ChatTaken                 chats/errors.py
│   ├── CheckpointTaken           chats/errors.py
│   ├── LineIsCheckpoint          chats/errors.py
│   └── FirstKeyNotAdmin          keys/errors.py
├── Invalid                  422  a shape that only the service can judge
│   ├── UnknownCharacter          context/errors.py
│   ├── WrongArguments            tools/errors.py
│   └── BudgetTooSmall            context/errors.py
└── Unavailable              503  raised in kit/db.py
    └── ChatBusy                  chats/errors.py

Memory layers derive theirs from these, each in its own errors.py (app/registry.py lists the layers).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

MAX_ERRORS = 100
"""A problem document lists at most so many places; a body of thousands of messages can be wrong in each."""


class AppError(Exception):
    """A problem with the request, told to the caller as RFC 9457.

    Args:
        detail: One sentence about this occurrence.
        errors: `[{"loc": [...], "msg": "...", "id"?: "..."}]`, where single places are to blame; `id` is one that is
            taken. An answer lists the first MAX_ERRORS of them.
        extra: Further members of the problem document.

    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = list(errors)
        self.extra = dict(extra or {})

    @property
    def headers(self) -> dict[str, str]:
        """Headers that belong to the answer."""
        return {}


class NotFound(AppError):
    """It is not there, or it is another tenant's."""

    status = 404
    code = "not_found"
    title = "Not found"


class Conflict(AppError):
    """It cannot be done as things stand."""

    status = 409
    code = "conflict"
    title = "Conflict"


class Invalid(AppError):
    """The request's shape is wrong in a way that its schema cannot tell."""

    status = 422
    code = "invalid"
    title = "Invalid request"


class Unavailable(AppError):
    """PostgreSQL is away, or a row that is needed stays locked; the same request may be sent again."""

    status = 503
    code = "unavailable"
    title = "Service unavailable"

    @property
    def headers(self) -> dict[str, str]:
        """Ask for the retry after two seconds."""
        return {"Retry-After": "2"}
