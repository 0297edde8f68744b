"""Errors of sessions."""

from app.kit.errors import NotFound


class SessionNotFound(NotFound):
    """The line has no session with this number."""

    code = "session_not_found"
    title = "Unknown session"
