"""What can be wrong with a request for a context."""

from app.kit.errors import Invalid


class UnknownCharacter(Invalid):
    """The chat names its characters, and this is none of them."""

    code = "unknown_character"
    title = "Unknown character"


class BudgetTooSmall(Invalid):
    """Not even what is never left out fits; `needed_tokens` says what does."""

    code = "budget_too_small"
    title = "Budget too small"
