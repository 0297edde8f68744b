"""Errors of keys, and of requests without a key."""

from app.kit.auth import Forbidden
from app.kit.errors import Conflict, NotFound, TooManyRequests


class KeyNotFound(NotFound):
    """The key does not exist or has been revoked."""

    code = "key_not_found"
    title = "Unknown key"


class FirstKeyNotAdmin(Conflict):
    """Every request needs a key once the first one exists, so the first key must be able to create others."""

    code = "first_key_not_admin"
    title = "The first key must have the scope admin"


class LoopbackOnly(Forbidden):
    """No key exists, and the request may come from another machine, or from a web page of another host."""

    code = "loopback_only"
    title = "Only requests from this machine are allowed"


class RateLimited(TooManyRequests):
    """The key or token sends more requests per second than it may.

    Args:
        detail: One sentence about this occurrence.
        retry_after_s: In how many seconds the next request is allowed.

    """

    code = "rate_limited"
    title = "Too many requests per second"

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
