"""Folds a diary without a model: quotes the character's own sentences, each with its date. Pure.

Nothing is rephrased, so the result contains no claim that the character did not write.
"""

import re
from collections.abc import Callable, Sequence

from app.summarising.extractive import Frequencies, extract_with
from app.summarising.transcript import Utterance

EXTRACT_VERSION = "extractive/1"

_PART_ENTRIES = 4
_PART_TOKENS = 90
_UNDATED = "—"
_DATED_LINE = re.compile(r"(?=\S*\d)([^\s:：]{1,24})[:：]\s*(.+)")


def fold_quotes(
    former: str,
    entries: Sequence[tuple[str, str]],
    *,
    most_lines: int,
    count_tokens: Callable[[str], int],
) -> str:
    """Return the former quotes and the weightiest sentences of `entries` (date, text): at most `most_lines` lines.

    If there are more, the older half is thinned, repeatedly until all lines fit: of every four lines, only the
    weightiest are kept. The older a part of the diary is, the more often it is thinned, and the fewer of its lines are
    left. But each group of four lines is thinned by itself, so the remaining lines are spread over the whole time.
    """

    def choose(written: Sequence[Utterance]) -> list[str]:
        return extract_with(written, frequencies, budget_tokens=_PART_TOKENS, count_tokens=count_tokens)

    lines = former.splitlines()
    written = [_utterance(date, text) for date, text in entries]
    frequencies = Frequencies.of([*map(_read_line, lines), *written])
    for start in range(0, len(written), _PART_ENTRIES):
        part = written[start : start + _PART_ENTRIES]
        lines += choose(part)
    while len(lines) > max(most_lines, 0):
        lines = _thinner(lines, choose)
    return "\n".join(line.removeprefix(f"{_UNDATED}: ") for line in lines)


def _thinner(lines: Sequence[str], choose: Callable[[Sequence[Utterance]], list[str]]) -> list[str]:
    """Return `lines` with the older half thinned: of every four lines, only the weightiest are kept.

    At least one line is dropped.
    """
    half = max(len(lines) // 2, 1)
    older, fewer = lines[:half], list[str]()
    for start in range(0, half, _PART_ENTRIES):
        fewer += choose([_read_line(line) for line in older[start : start + _PART_ENTRIES]])
    return [*(fewer if len(fewer) < half else older[1:]), *lines[half:]]


def _read_line(line: str) -> Utterance:
    """Return a line of the former text as it was written, without its quotation marks."""
    dated = _DATED_LINE.fullmatch(line)
    date, text = (dated[1], dated[2]) if dated else (_UNDATED, line)
    return _utterance(date, text[1:-1] if text.startswith("“") and text.endswith("”") else text)


def _utterance(date: str, text: str) -> Utterance:
    # All words in a diary are the character's, so the date takes the place of the speaker's name.
    return Utterance(0, "assistant", date, text)
