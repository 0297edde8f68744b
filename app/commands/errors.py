"""What ends a command with one line: a wrong setting, a directory in use, a problem with the request."""

from app.kit.errors import AppError
from app.kit.settings import SettingsError
from app.local.errors import LocalError

CommandError = (SettingsError, LocalError, AppError)
"""For an `except`; the text of each is one line for a person."""
