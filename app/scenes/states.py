"""Parses the state in a model's answer: one `label: value` per line, each label once. Pure.

Although they are asked for that, cheap models group by person: `Mira:` with `- place: the pier` below it, then `Jonas:`
with another place. Parsed line by line, the second place would replace the first. So the name of a group becomes part
of the labels in it: `Mira, place: the pier`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

StateLine = tuple[int, str]
"""(depth, text) of a line. A line that is deeper than the line above it belongs to that line."""

_LABELLED = re.compile(r"([^:：\n]{1,60}?)\s*[:：]\s*(.*)")
_BULLET = "- "


def read_state(lines: Sequence[StateLine]) -> list[str]:
    """Return the lines of a state without groups, with the newest value of each label; parsing is idempotent."""
    told = newest_values(_name_groups(lines))
    while (again := newest_values(_name_groups([(depth_of(line), line) for line in told]))) != told:
        told = again
    return told


def newest_values(lines: Sequence[str]) -> list[str]:
    """Return the lines of a state with each label once, at its first position and with its newest value."""
    by_label: dict[str, str] = {}
    for line in lines:
        labelled = _LABELLED.fullmatch(line)
        by_label[labelled[1].removeprefix(_BULLET).casefold() if labelled else line] = line
    return list(by_label.values())


def depth_of(text: str, indent: int = 0) -> int:
    """Return the depth of a line: 1 + `indent` if it has a bullet, else 0."""
    return 1 + indent if text.startswith(_BULLET) else 0


def _name_groups(lines: Sequence[StateLine]) -> list[str]:
    """Return the lines with the names of their groups; a line without a label becomes a value of its group's name."""
    heads = _find_heads(lines)
    told: dict[int, str] = {}
    above: list[int] = []
    for at, (depth, line) in enumerate(lines):
        while above and lines[above[-1]][0] >= depth:
            above.pop()
        if at in heads:
            above.append(at)
            continue
        text = line.removeprefix(_BULLET)
        name = ", ".join(heads[head] for head in above)
        if not above:
            told[at] = line
        elif _LABELLED.fullmatch(text):
            told[at] = f"{_BULLET}{name}, {text}"
        elif above[-1] in told:
            told[above[-1]] += f"; {text}"
        else:
            told[above[-1]] = f"{_BULLET}{name}: {text}"
    return list(told.values())


def _find_heads(lines: Sequence[StateLine]) -> Mapping[int, str]:
    """Return the lines that name a group, with the name: a label without a value, followed by a deeper line.

    A single one at its depth is left out, because it distinguishes nothing: "At the end of the scene:".
    """
    heads = {}
    for at, (depth, line) in enumerate(lines[:-1]):
        labelled = _LABELLED.fullmatch(line.removeprefix(_BULLET))
        if labelled and not labelled[2] and lines[at + 1][0] > depth:
            heads[at] = labelled[1]
    at_depth = Counter(lines[at][0] for at in heads)
    return {at: name for at, name in heads.items() if at_depth[lines[at][0]] > 1}
