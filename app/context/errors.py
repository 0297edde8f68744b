"""Errors of requests for a context."""

from app.kit.errors import Invalid


class UnknownCharacter(Invalid):
    """The chat lists its characters, and the given name is not one of them."""

    code = "unknown_character"
    title = "Unknown character"


class BudgetTooSmall(Invalid):
    """The parts that are never left out exceed `max_tokens`; they need `needed_tokens`."""

    code = "budget_too_small"
    title = "Budget too small"
