"""The errors of facts."""

from app.kit.errors import NotFound


class FactNotFound(NotFound):
    """No fact with this key holds."""

    code = "fact_not_found"
    title = "Unknown fact"
