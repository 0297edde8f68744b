"""The older part of a diary without a model: the character's own sentences, each with its day. Pure.

Nothing is rephrased, so nothing is claimed that the character did not write.
"""

import re
from collections.abc import Callable, Sequence

from app.summarising.extractive import extract
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
    """The former quotes and the most telling ones of `entries` (date, text), one a line, at most `most_lines`.

    Where there are more, the most telling of every few of the older half stand for these, again and again: what is long
    ago is told ever more sparsely, but evenly.
    """

    def choose(written: Sequence[Utterance]) -> list[str]:
        return extract(written, everything, budget_tokens=_PART_TOKENS, count_tokens=count_tokens)

    lines = former.splitlines()
    written = [_utterance(date, text) for date, text in entries]
    everything = [*map(_read_line, lines), *written]
    for start in range(0, len(written), _PART_ENTRIES):
        part = written[start : start + _PART_ENTRIES]
        lines += choose(part)
    while len(lines) > max(most_lines, 0):
        lines = _thinner(lines, choose)
    return "\n".join(line.removeprefix(f"{_UNDATED}: ") for line in lines)


def _thinner(lines: Sequence[str], choose: Callable[[Sequence[Utterance]], list[str]]) -> list[str]:
    """The same lines with the most telling left of every few of the older half, and at least one line less."""
    half = max(len(lines) // 2, 1)
    older, fewer = lines[:half], list[str]()
    for start in range(0, half, _PART_ENTRIES):
        fewer += choose([_read_line(line) for line in older[start : start + _PART_ENTRIES]])
    return [*(fewer if len(fewer) < half else older[1:]), *lines[half:]]


def _read_line(line: str) -> Utterance:
    """A line of the former text as it was written, without the marks of its quotation."""
    dated = _DATED_LINE.fullmatch(line)
    date, text = (dated[1], dated[2]) if dated else (_UNDATED, line)
    return _utterance(date, text[1:-1] if text.startswith("“") and text.endswith("”") else text)


def _utterance(date: str, text: str) -> Utterance:
    # Whose words they are goes without saying in a diary: the day stands where a transcript has the speaker.
    return Utterance(0, "assistant", date, text)
