"""What can be wrong with a request for a context."""

from app.kit.errors import Invalid


class BudgetTooSmall(Invalid):
    """Not even what is never left out fits; `needed_tokens` says what does."""

    code = "budget_too_small"
    title = "Budget too small"
