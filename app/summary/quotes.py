"""The summary without a model: sentences that were said, of what is longer ago the weightiest. Pure.

Nothing is rephrased, so nothing is claimed that was not said.
"""

from collections.abc import Callable, Sequence

from app.summarising.extractive import extract, is_quote
from app.summarising.thinning import find_thinnest, thin
from app.summarising.transcript import Utterance

EXTRACT_VERSION = "extractive/1"
SUMMARY_TOKENS = 500

_PART_MESSAGES = 8
_PART_TOKENS = 60


def fold_quotes(former: str, messages: Sequence[Utterance], *, count_tokens: Callable[[str], int]) -> str:
    """The former text and the most telling quotes of `messages`, one a line, together at most SUMMARY_TOKENS as a rule.

    Where they exceed it the shortest quotes of the older half go: who has more to say, says more. So what is long ago
    is told ever more sparsely, but what was longest about it is kept, and so is the first quote. What a person or a
    model wrote gives way only when no older quote is left, and its first line never does.
    """
    lines = former.splitlines()
    for start in range(0, len(messages), _PART_MESSAGES):
        part = messages[start : start + _PART_MESSAGES]
        lines += extract(part, messages, budget_tokens=_PART_TOKENS, count_tokens=count_tokens)
    while count_tokens("\n".join(lines)) > SUMMARY_TOKENS and (left := _thin_once(lines)) != lines:
        lines = left
    return "\n".join(lines)


def _thin_once(lines: list[str]) -> list[str]:
    """Without the thinnest quotes; where only the newest line is one, without others; the same where two are left."""
    quotes = [at for at, line in enumerate(lines) if is_quote(line)]
    if quotes and quotes != [len(lines) - 1]:
        gone = {quotes[at] for at in find_thinnest([lines[at] for at in quotes])}
        return [line for at, line in enumerate(lines) if at not in gone]
    return thin(lines) if len(lines) > 2 else lines
