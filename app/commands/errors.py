"""Errors that end a command with a one-line message."""

from app.kit.errors import AppError
from app.kit.settings import SettingsError
from app.local.errors import LocalError

CommandError = (SettingsError, LocalError, AppError)
"""For an `except` clause. The message of each is one line for people."""
