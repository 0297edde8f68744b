"""Errors of vaults."""


class InvalidVault(ValueError):
    """The file is not a vault that can be restored; the message is one line that says what is wrong."""
