"""Errors of requests for a context."""

from app.kit.errors import Conflict, Invalid


class UnknownCharacter(Invalid):
    """The chat lists its characters, and the given name is not one of them."""

    code = "unknown_character"
    title = "Unknown character"


class BudgetTooSmall(Invalid):
    """The parts that are never left out exceed `max_tokens`; they need `needed_tokens`."""

    code = "budget_too_small"
    title = "Budget too small"


class BeforeHistory(Conflict):
    """The message is older than the history, so the context for generating it again cannot be assembled any more."""

    code = "before_history"
    title = "Message is older than the history"
