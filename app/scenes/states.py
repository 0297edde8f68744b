"""How things stand, in a model's answer: one `label: value` a line, every label once. Pure.

Asked for that, cheap models group by person all the same: `Mira:` with `- place: the pier` below it, then `Jonas:` with
a place of his own. Read line by line the second place would be taken for the newer value of the first, so the name of
a group goes into the labels of what stands in it: `Mira, place: the pier`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

StateLine = tuple[int, str]
"""How deep a line stands, and its text: what is deeper than the line above it belongs to that."""

_LABELLED = re.compile(r"([^:：\n]{1,60}?)\s*[:：]\s*(.*)")
_BULLET = "- "


def read_state(lines: Sequence[StateLine]) -> list[str]:
    """The lines of a state without groups, with the newest value of each label; read again they stay the same."""
    told = newest_values(_name_groups(lines))
    while (again := newest_values(_name_groups([(depth_of(line), line) for line in told]))) != told:
        told = again
    return told


def newest_values(lines: Sequence[str]) -> list[str]:
    """The lines of a state; a label that stands there twice keeps its place, and its newest value."""
    by_label: dict[str, str] = {}
    for line in lines:
        labelled = _LABELLED.fullmatch(line)
        by_label[labelled[1].removeprefix(_BULLET).casefold() if labelled else line] = line
    return list(by_label.values())


def depth_of(text: str, indent: int = 0) -> int:
    """How deep a line stands that is indented so far: with a bullet deeper than without."""
    return 1 + indent if text.startswith(_BULLET) else 0


def _name_groups(lines: Sequence[StateLine]) -> list[str]:
    """The lines, those of a group with its name; what has no label of its own is a value of that name."""
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
    """Which lines name a group: a label without a value, and something deeper right below.

    A single one says nothing that the lines below would need: "At the end of the scene:".
    """
    heads = {}
    for at, (depth, line) in enumerate(lines[:-1]):
        labelled = _LABELLED.fullmatch(line.removeprefix(_BULLET))
        if labelled and not labelled[2] and lines[at + 1][0] > depth:
            heads[at] = labelled[1]
    at_depth = Counter(lines[at][0] for at in heads)
    return {at: name for at, name in heads.items() if at_depth[lines[at][0]] > 1}
