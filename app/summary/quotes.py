"""The summary without a model: sentences that were said, of what is longer ago the weightiest. Pure.

Nothing is rephrased, so nothing is claimed that was not said.
"""

from collections.abc import Callable, Sequence

from app.summarising.extractive import extract
from app.summarising.thinning import thin
from app.summarising.transcript import Utterance

EXTRACT_VERSION = "extractive/1"
SUMMARY_TOKENS = 500

_PART_MESSAGES = 8
_PART_TOKENS = 60


def fold_quotes(former: str, messages: Sequence[Utterance], *, count_tokens: Callable[[str], int]) -> str:
    """The former quotes and the most telling ones of `messages`, one a line, together at most SUMMARY_TOKENS.

    Where they exceed it the shortest lines of the older half go: who has more to say, says more. So what is long ago is
    told ever more sparsely, but what was longest about it is kept, and so is the first line.
    """
    lines = former.splitlines()
    for start in range(0, len(messages), _PART_MESSAGES):
        part = messages[start : start + _PART_MESSAGES]
        lines += extract(part, messages, budget_tokens=_PART_TOKENS, count_tokens=count_tokens)
    while len(lines) > 1 and count_tokens("\n".join(lines)) > SUMMARY_TOKENS:
        lines = thin(lines)
    return "\n".join(lines)
