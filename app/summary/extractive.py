"""The summary without a model: quotes of what was said, with fewer quotes of older messages. Pure.

Nothing is rephrased, so the summary claims only what was said.
"""

from collections.abc import Callable, Sequence

from app.summarising.extractive import Frequencies, extract_with, is_quote
from app.summarising.pruning import find_thinnest, thin
from app.summarising.transcript import Utterance

EXTRACT_VERSION = "extractive/1"
SUMMARY_TOKENS = 500

_PART_MESSAGES = 8
_PART_TOKENS = 60


def fold_quotes(former: str, messages: Sequence[Utterance], *, count_tokens: Callable[[str], int]) -> str:
    """Return the former text and the best quotes of `messages`, one per line, usually at most SUMMARY_TOKENS together.

    If they exceed that, the shortest quotes of the older half are dropped repeatedly, so the older a message is, the
    fewer quotes of it are left. The first quote stays while there are at least three. Lines that a person or a model
    wrote are dropped only after all quotes before the last line. In this case the first line stays.
    """
    frequencies = Frequencies.of(messages)
    lines = former.splitlines()
    for start in range(0, len(messages), _PART_MESSAGES):
        part = messages[start : start + _PART_MESSAGES]
        lines += extract_with(part, frequencies, budget_tokens=_PART_TOKENS, count_tokens=count_tokens)
    while count_tokens("\n".join(lines)) > SUMMARY_TOKENS and (left := _thin_once(lines)) != lines:
        lines = left
    return "\n".join(lines)


def _thin_once(lines: list[str]) -> list[str]:
    """Return `lines` without the shortest of the older quotes.

    If no line before the last one is a quote, the shortest of the older lines are left out, unless there are at most
    two lines.
    """
    quotes = [at for at, line in enumerate(lines) if is_quote(line)]
    if quotes and quotes != [len(lines) - 1]:
        gone = {quotes[at] for at in find_thinnest([lines[at] for at in quotes])}
        return [line for at, line in enumerate(lines) if at not in gone]
    return thin(lines) if len(lines) > 2 else lines
