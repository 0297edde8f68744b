"""What fits into `max_tokens`. Pure.

The ways to make a context shorter are a fixed chain, and the first that fits is taken: so a smaller budget
never shows what a bigger one left out.
"""

from app.context.formats import count_tokens_of, is_said, word
from app.context.order import arrange
from app.context.parts import BuildMemos, Fitted, Omission, Parts
from app.context.segments import Manner
from app.context.trims import shorten
from app.context.wording import is_blank


class BudgetTooSmallError(Exception):
    """Not even what is never left out fits; into `needed_tokens` it does."""

    def __init__(self, needed_tokens: int) -> None:
        super().__init__(f"the context needs at least {needed_tokens} tokens")
        self.needed_tokens = needed_tokens


def fit(parts: Parts, max_tokens: int, manner: Manner, build_memos: BuildMemos) -> Fitted:
    """Leave out as little as makes `render` count at most `max_tokens`, and list it.

    Raises BudgetTooSmallError, and KeyError where a segment follows one of unknown name.
    """
    segments = [*parts.segments, build_memos(parts.memos)] if parts.memos else parts.segments
    plan = arrange(segments, parts.history, parts.newest, parts.anchor_seq)
    left = whole = Fitted(word(plan, manner), parts.memos, _list_blank(parts))
    for left in shorten(whole, parts, build_memos, max_tokens):
        if count_tokens_of(left.worded) <= max_tokens:
            return left
    raise BudgetTooSmallError(count_tokens_of(left.worded))


def _list_blank(parts: Parts) -> tuple[Omission, ...]:
    messages = [*parts.history, *([parts.newest] if parts.newest else [])]
    return (
        *(Omission(one.name, "blank", one.tokens) for one in parts.segments if is_blank(one.text)),
        *(Omission(f"message:{one.message_id}", "blank", one.tokens) for one in messages if not is_said(one)),
    )
