"""Errors with an HTTP status.

AppError
├── Unauthorized             401  kit/auth.py
├── Forbidden                403  kit/auth.py
│   └── LoopbackOnly              keys/errors.py
├── NotFound                 404
│   ├── ChatNotFound              chats/errors.py
│   ├── LineNotFound              chats/errors.py
│   ├── CharacterNotFound         chats/errors.py
│   ├── MessageNotFound           chats/errors.py
│   ├── SwipeNotFound             chats/errors.py
│   ├── CheckpointNotFound        chats/errors.py
│   ├── VersionNotFound           narratives/service.py
│   ├── UserNotFound              knowledge/errors.py
│   ├── ToolNotFound              tools/errors.py
│   ├── KeyNotFound               keys/errors.py
│   └── WorkNotFound              operations/service.py
├── TooManyRequests          429
│   ├── TooManyWaiting            raised in kit/gate/connection_gate.py
│   ├── TooManyImports            transfer/errors.py
│   └── RateLimited               keys/errors.py
├── Conflict                 409
│   ├── CharacterMismatch         chats/errors.py
│   ├── CharacterTaken            chats/errors.py
│   ├── MessageIdTaken            chats/errors.py
│   ├── TooManySwipes             chats/errors.py
│   ├── TooManyCheckpoints        chats/errors.py
│   ├── TooManyLines              chats/errors.py
│   ├── LineIsCurrent             chats/errors.py
│   ├── ChatTaken                 chats/errors.py
│   ├── CheckpointTaken           chats/errors.py
│   ├── LineIsCheckpoint          chats/errors.py
│   ├── TooManyKeys               knowledge/errors.py
│   ├── BeforeHistory             context/errors.py
│   └── FirstKeyNotAdmin          keys/errors.py
├── MalformedRequest         400  web/errors.py
├── RequestTimeout           408  web/errors.py
├── UrlTooLong               414  web/errors.py
├── HeadTooLarge             431  web/errors.py
├── Invalid                  422  a request that its schema accepts but the service does not
│   ├── UnknownCharacter          context/errors.py
│   ├── WrongArguments            tools/errors.py
│   ├── InvalidFile               transfer/errors.py
│   └── BudgetTooSmall            context/errors.py
└── Unavailable              503  mostly raised in kit/unavailable.py, kit/gate/connection_gate.py
    ├── DatabaseRejected          raised in kit/unavailable.py, migrate.py
    ├── WritesRefused             raised in kit/unavailable.py
    ├── ChatBusy                  mostly raised in kit/gate/connection_gate.py, chats/errors.py
    └── ServerFull                web/errors.py

Each memory layer derives its own errors from these in its errors.py (app/registry.py lists the layers).
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

MAX_ERRORS = 20
"""The maximum number of errors in a problem document; a body of thousands of messages can have an error in each."""


class AppError(Exception):
    """A problem with a request, returned to the caller as an RFC 9457 problem document.

    Args:
        detail: One sentence about this occurrence.
        errors: `[{"loc": [...], "msg": "...", "id"?: "..."}]`, one for each invalid location; `id` is an id that is
            already taken. A response lists the first MAX_ERRORS of them, and counts the others in `detail`.
        extra: Additional members of the problem document.

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
        """Headers of the response."""
        return {}


def problem_document(
    *, status: int, code: str, title: str, detail: str, instance: str, extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the members of a problem document (RFC 9457). `instance` is the path of the request, if it is known."""
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "instance": instance,
        **(extra or {}),
    }


class NotFound(AppError):
    """The resource does not exist, or the caller has no access to it."""

    status = 404
    code = "not_found"
    title = "Not found"


class Conflict(AppError):
    """The request conflicts with the current state."""

    status = 409
    code = "conflict"
    title = "Conflict"


class Invalid(AppError):
    """The request is invalid in a way that its schema cannot express."""

    status = 422
    code = "invalid"
    title = "Invalid request"


class TooManyRequests(AppError):
    """The client sends more requests than it may. It may retry the request after `retry_after_s` seconds."""

    status = 429
    code = "too_many_requests"
    title = "Too many requests"
    retry_after_s: int = 1

    @property
    def headers(self) -> dict[str, str]:
        """`Retry-After`, in seconds."""
        return {"Retry-After": str(self.retry_after_s)}


class TooManyWaiting(TooManyRequests):
    """Too many requests of the chat, of the tenant or of this process wait already, so this one does not wait."""

    code = "too_many_waiting"
    title = "Too many requests are waiting"


class Unavailable(AppError):
    """PostgreSQL is unreachable or overloaded, or a required row stays locked. The client may retry the request."""

    status = 503
    code = "unavailable"
    title = "Service unavailable"

    @property
    def headers(self) -> dict[str, str]:
        """A `Retry-After` of two seconds."""
        return {"Retry-After": "2"}


class DatabaseRejected(Unavailable):
    """PostgreSQL runs, but the database does not exist, rejects the credentials, or lacks an extension."""


class WritesRefused(Unavailable):
    """PostgreSQL can be read, but not written.

    Args:
        detail: One sentence about the reason.
        state: The reason as `GET /readyz` returns it.

    """

    def __init__(self, detail: str, *, state: Literal["read-only", "disk full"]) -> None:
        super().__init__(detail)
        self.state: Final = state
        self.at_s = time.monotonic()


class ChatBusy(Unavailable):
    """Other requests keep the chat locked for too long; the client can retry the request."""

    code = "chat_busy"
    title = "Chat is busy"
