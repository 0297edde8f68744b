"""Errors of the demo."""

from app.local.errors import LocalError


class DemoError(LocalError):
    """The demo cannot continue. The message is one line with the reason."""
