"""Reads the lines of a state: groups become part of the labels, and each label has its newest value. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

StateLine = tuple[int, str]
"""(depth, text) of a line. A line that is deeper than the line above it belongs to that line."""

_LABELLED = re.compile(r"([^:：\n]{1,60}?)\s*[:：]\s*(.*)")
_DASH = "- "


def read_state(lines: Sequence[StateLine]) -> list[str]:
    """Return the lines of a state without groups, with the newest value of each label; parsing is idempotent."""
    newest = newest_values(_name_groups(lines))
    while (again := newest_values(_name_groups([(depth_of(line), line) for line in newest]))) != newest:
        newest = again
    return newest


def newest_values(lines: Sequence[str]) -> list[str]:
    """Return the lines of a state with each label once, at its first position and with its newest value."""
    by_label: dict[str, str] = {}
    for line in lines:
        labelled = _LABELLED.fullmatch(line)
        by_label[labelled[1].removeprefix(_DASH).casefold() if labelled else line] = line
    return list(by_label.values())


def depth_of(text: str, indent: int = 0) -> int:
    """Return the depth of a line: 1 + `indent` if it has a bullet, else 0."""
    return 1 + indent if text.startswith(_DASH) else 0


def _name_groups(lines: Sequence[StateLine]) -> list[str]:
    """Return the lines with the names of their groups; a line without a label becomes a value of its group's name."""
    heads = _find_heads(lines)
    merged: dict[int, str] = {}
    above: list[int] = []
    for at, (depth, line) in enumerate(lines):
        while above and lines[above[-1]][0] >= depth:
            above.pop()
        if at in heads:
            above.append(at)
            continue
        text = line.removeprefix(_DASH)
        name = ", ".join(heads[head] for head in above)
        if not above:
            merged[at] = line
        elif _LABELLED.fullmatch(text):
            merged[at] = f"{_DASH}{name}, {text}"
        elif above[-1] in merged:
            merged[above[-1]] += f"; {text}"
        else:
            merged[above[-1]] = f"{_DASH}{name}: {text}"
    return list(merged.values())


def _find_heads(lines: Sequence[StateLine]) -> Mapping[int, str]:
    """Return the lines that name a group, with the name: a label without a value, followed by a deeper line.

    A name that is the only one at its depth is left out, because it distinguishes nothing: "At the end of the scene:".
    """
    heads = {}
    for at, (depth, line) in enumerate(lines[:-1]):
        labelled = _LABELLED.fullmatch(line.removeprefix(_DASH))
        if labelled and not labelled[2] and lines[at + 1][0] > depth:
            heads[at] = labelled[1]
    at_depth = Counter(lines[at][0] for at in heads)
    return {at: name for at, name in heads.items() if at_depth[lines[at][0]] > 1}
