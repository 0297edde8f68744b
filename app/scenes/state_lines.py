"""Reads the lines of a recap's state: puts the names of groups into labels, and keeps each label's newest value. Pure.

A group is a label without a value (`Mira:`) with deeper lines below it. A state can have a heading, such as "At the end
of the scene:". It looks like the name of a group, but it has no bullet, and all other lines are deeper.
"""

import re
from collections.abc import Collection, Mapping, Sequence

StateLine = tuple[int, str]
"""(depth, text) of a line. The deeper lines that follow the name of a group belong to the group."""

_LABELLED = re.compile(r"([^:：\n]{1,60}?)\s*[:：]\s*(.*)")
_DASH = "- "
_MOST_WORDS_OF_NAME = 3


def read_state(lines: Sequence[StateLine]) -> list[str]:
    """Return the lines of a state, with groups turned into labels and each label's newest value; idempotent."""
    newest = newest_values(_name_groups(lines))
    while (again := newest_values(_name_groups([(depth_of(line), line) for line in newest]))) != newest:
        newest = again
    return newest


def join_states(states: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of states, the oldest first, as one state with the newest value of each label.

    The states are as `read_state` returns them. Their headings are treated in one of three ways:

    - If all states have the same heading, it stays as it is.
    - If the headings name no group, such as "Scene 1" and "Scene 2" (`_names_no_group`), they are left out.
    - Otherwise the headings name groups, because a label below "Mira:" is not the same as one below "Kai:".
    """
    with_depths = [[(depth_of(line), line) for line in state] for state in states]
    headings = {_name_heading(lines) for lines in with_depths}
    if len(headings) == 1:
        return newest_values([line for lines in with_depths for line in _name_groups(lines)])
    if _names_no_group(headings):
        with_depths = [_without_heading(lines) for lines in with_depths]
    return newest_values([line for lines in with_depths for line in _name_groups(lines, keeps_heading=False)])


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


def _name_groups(lines: Sequence[StateLine], *, keeps_heading: bool = True) -> list[str]:
    """Return the lines with the names of their groups; a line without a label becomes a value of its group's name.

    With `keeps_heading`, the heading of the state stays as it is, and names no group.
    """
    heads = _find_heads(lines)
    if keeps_heading and (heading := _find_heading(lines, heads)) is not None:
        del heads[heading]
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


def _find_heads(lines: Sequence[StateLine]) -> dict[int, str]:
    """Return the names of groups by line index; a name is a label without a value, followed by a deeper line."""
    heads = {}
    for at, (depth, line) in enumerate(lines[:-1]):
        labelled = _LABELLED.fullmatch(line.removeprefix(_DASH))
        if labelled and not labelled[2] and lines[at + 1][0] > depth:
            heads[at] = labelled[1]
    return heads


def _find_heading(lines: Sequence[StateLine], heads: Mapping[int, str]) -> int | None:
    """Return which of `heads` is the heading of the whole state, such as "At the end of the scene:", or None.

    It has no bullet, and all other lines are deeper. It applies to all lines, so it is no part of their labels.
    """
    least_depth = min((depth for depth, _ in lines), default=0)
    least_deep = [at for at, (depth, _) in enumerate(lines) if depth == least_depth]
    headings = [at for at in least_deep if at in heads and not lines[at][1].startswith(_DASH)]
    return headings[0] if headings and len(least_deep) == 1 else None


def _names_no_group(headings: Collection[str | None]) -> bool:
    """Return whether the headings of several states name no group; the headings are not all equal.

    They name none if they differ only in numbers, as "Scene 1" and "Scene 2" do. If some states have no heading (None),
    the headings of the others must also have more than three words; a shorter one is the name of a group.
    """
    found = [heading for heading in headings if heading is not None]
    if len({re.sub(r"\d+", "", heading) for heading in found}) != 1:
        return False
    return None not in headings or all(len(heading.split()) > _MOST_WORDS_OF_NAME for heading in found)


def _without_heading(lines: list[StateLine]) -> list[StateLine]:
    """Return the lines without the heading of the whole state."""
    heading = _find_heading(lines, _find_heads(lines))
    return lines if heading is None else [*lines[:heading], *lines[heading + 1 :]]


def _name_heading(lines: Sequence[StateLine]) -> str | None:
    """Return the heading of the whole state, case-folded to compare it with other headings; None without one."""
    heads = _find_heads(lines)
    heading = _find_heading(lines, heads)
    return None if heading is None else heads[heading].casefold()
