"""Errors of exports and imports."""

from app.kit.errors import Invalid, TooManyRequests


class InvalidFile(Invalid):
    """The file or folder cannot be used; the detail says why, and where the problem is if that is known."""

    code = "invalid_file"
    title = "Invalid file"


class TooManyImports(TooManyRequests):
    """The process is already reading as many files as it may at once."""

    code = "too_many_imports"
    title = "Too many imports"
    retry_after_s = 5
