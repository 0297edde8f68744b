"""What can stop the demo."""

from app.local.errors import LocalError


class DemoError(LocalError):
    """The demo cannot go on; the text is one line that says why."""
