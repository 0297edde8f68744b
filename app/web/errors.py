"""Errors of HTTP connections, which are answered before a request reaches the application."""

from app.kit.errors import AppError, Unavailable


class MalformedRequest(AppError):
    """The bytes are not valid HTTP, too many requests wait, or too much of a body arrives after the answer was sent."""

    status = 400
    code = "bad_request"
    title = "Bad request"


class RequestTimeout(AppError):
    """The request did not arrive in time."""

    status = 408
    code = "request_timeout"
    title = "Request timeout"


class UrlTooLong(AppError):
    """The URL is too long."""

    status = 414
    code = "url_too_long"
    title = "URL too long"


class HeadTooLarge(AppError):
    """The request has too many headers, or too many bytes besides its body."""

    status = 431
    code = "head_too_large"
    title = "Head too large"


class ServerFull(Unavailable):
    """The limit of connections is reached, and none of them can be closed."""

    code = "server_full"
    title = "Too many connections"
