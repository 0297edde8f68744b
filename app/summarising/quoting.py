"""Quotes messages for a model so that no text in them can end the quotation, and shortens them to a budget. Pure."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

_OPENS_TAG = re.compile(r"<(?=[A-Za-z/|｜!?_])")  # the wide bar is in the special tokens of some models
_WORD_CHARS = 20
_LINE_BREAKS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def quoted(value: object) -> str:
    """Return `value` as JSON on one line, without `<` where a prompt or a chat template could read a tag."""
    return _OPENS_TAG.sub(r"\\u003c", json.dumps(value, ensure_ascii=False)).translate(_LINE_BREAKS)


def shorten_to_share(texts: Sequence[str], budget_tokens: int, count_tokens: Callable[[str], int]) -> list[str]:
    """Return `texts`, the longest ones shortened so that all together take at most `budget_tokens`.

    The shortened texts get equal shares, as large as possible: tokens that short texts do not need go to the long
    ones. The head and the tail of a text are kept, with `[…n characters left out…]` between them. If the share is too
    small for these words, the text becomes empty.
    """
    costs = [count_tokens(text) for text in texts]
    share = _share(costs, budget_tokens)
    return [
        text if cost <= share else _shorten(text, share, count_tokens) for text, cost in zip(texts, costs, strict=True)
    ]


def _share(costs: Sequence[int], budget_tokens: int) -> int:
    """Return the largest share such that the costs, each capped at it, fit into `budget_tokens` together."""
    left = max(budget_tokens, 0)
    for n, cost in enumerate(sorted(costs)):
        share = left // (len(costs) - n)
        if cost > share:
            return share
        left -= cost
    return max(costs, default=0)


def _shorten(text: str, share_tokens: int, count_tokens: Callable[[str], int]) -> str:
    def cost_of(kept_chars: int) -> int:
        return count_tokens(_without_middle(text, kept_chars))

    # The cost is not strictly monotonic in the length. The result fits nevertheless, because bisection ends on a length
    # that it has measured.
    fitting = bisect_right(range(len(text)), share_tokens, key=cost_of)
    return _without_middle(text, fitting - 1) if fitting else ""


def _without_middle(text: str, kept_chars: int) -> str:
    """Return at most `kept_chars` of `text`, half from each end, cut between words if one ends nearby."""
    head, tail = text[: kept_chars - kept_chars // 2], text[len(text) - kept_chars // 2 :]
    whole_head, whole_tail = head.rpartition(" ")[0], tail.partition(" ")[2]
    if whole_head and len(head) - len(whole_head) <= _WORD_CHARS:
        head = whole_head
    if whole_tail and len(tail) - len(whole_tail) <= _WORD_CHARS:
        tail = whole_tail
    return f"{head} […{len(text) - len(head) - len(tail):,} characters left out…] {tail}"
