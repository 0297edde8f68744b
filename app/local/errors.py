"""What can go wrong on this machine, told in one line."""


class LocalError(Exception):
    """The stack cannot start or go on; the text is one line that says why and what to do."""
