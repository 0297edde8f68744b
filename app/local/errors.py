"""Errors of the embedded stack."""


class LocalError(Exception):
    """The stack cannot start or continue. The message is one line with the reason."""
