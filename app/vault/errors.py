"""Errors of vaults."""


class InvalidVault(ValueError):
    """The file is not a vault that can be restored; the message is one line that names the file and the problem."""
