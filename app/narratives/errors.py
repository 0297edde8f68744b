"""Errors of narratives."""

from app.kit.errors import NotFound


class VersionNotFound(NotFound):
    """The narrative has no such version."""

    code = "version_not_found"
    title = "Unknown version"
