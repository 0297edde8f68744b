"""The items on the pages of a vault, and how they are compared with those of the export and of the chat. Pure.

`compare` finds what a person changed on the pages since the export, from the hashes of the exported items
(`marks.json`). `judge` compares such a change with the item in the chat: if the same part was also changed in the chat
since the export, the version of the chat stays.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import orjson

Part = str | bool | None | tuple[str | None, tuple[str, ...]]
"""A memory has three parts: text; category and tags; whether it is archived.

A scene has three, too: the recap, the title, and the number in its heading. The summary, a memo and a diary entry have
two: the text and the headings, one a line: those of the sections of the summary, that of the memo, or those of the
diary and of the entry. The numbers and the headings cannot be changed on the pages (`structure.py`). Any other item has
one part, its text.
"""

PARTS = {"memory": 3, "scene": 3, "summary": 2, "memo": 2, "entry": 2}
"""The number of parts of an item, by its kind; 1 for any other kind."""

_CONTENTS = {"memory": 3, "scene": 2}
"""The number of parts that a person can change, by the kind of the item; they are the first ones. 1 for any other."""

Digests = tuple[str, ...]
"""The hash of each part of an item."""

Exported = Mapping[str, Mapping[str, Digests]]
"""The hashes of the items of an export: for each page, or each diary on `diary.md`, the hashes by mark.

The outer keys are values of `Item.page_part`. The items of a page are in the order in which they are on it.
The mark of an item is the name at its end (`wording.py`).
"""

T = TypeVar("T")

_DIGEST_CHARS = 16


class PageError(ValueError):
    """A page, or `marks.json`, cannot be read; the message is one line that names the file and the problem."""


class Item(NamedTuple):
    """An item of a page.

    Attributes:
        kind: `memory`, `fact`, `block`, `memo`, `entry`, `summary`, `recap` (the running one) or `scene`.
        page_part: The page; on `diary.md`, the page and the heading of one diary.
        line: The number of the first line.
        mark: The mark at its end, such as `memo-0192f3a1b2c3`; None if a person wrote the item, or removed the mark.
            The mark of a fact is computed from its key. There is one summary and one running recap, so their marks are
            always the same.
        name: The key of a fact, or the heading of the diary.
        parts: Its parts; the first is the text.

    """

    kind: str
    page_part: str
    line: int
    mark: str | None
    name: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text."""
        return str(self.parts[0])

    @property
    def digests(self) -> Digests:
        """The hashes of the parts."""
        return tuple(hashlib.sha256(orjson.dumps(part)).hexdigest()[:_DIGEST_CHARS] for part in self.parts)

    @property
    def contents(self) -> Digests:
        """The hashes of the parts that a person can change."""
        return _select_contents(self.kind, self.digests)


class Change(NamedTuple):
    """What a person changed.

    Attributes:
        action: What was done.
        mark: The mark of the item in the export; None for an added one.
        page_part: The part of the pages that it is on.
        base: The hashes of the parts that can be changed, as they were in the export; empty for an added item.
        item: The item as it is now; None if it was removed.
        after: For an added item that is between two items of the export on the same part of the pages: the mark of
            the nearest one before it. Otherwise None.

    """

    action: Literal["edit", "add", "remove"]
    mark: str | None
    page_part: str
    base: Digests
    item: Item | None
    after: str | None = None


class Verdict(NamedTuple):
    """What to do with a change: the numbers of the parts to change, or the reason why no part is changed."""

    parts: frozenset[int] = frozenset()
    reason: str = ""


def compare(exported: Exported, items: Sequence[Item]) -> list[Change]:
    """Return what was changed, in the order of the pages; items that are missing from the pages come last."""
    base = {
        mark: _select_contents(kind_of(mark), digests) for marks in exported.values() for mark, digests in marks.items()
    }
    found = _match(exported, base, items)
    changes = list[Change]()
    for number, item in enumerate(items):
        mark = found.get(number)
        if mark is None and item.text:
            changes.append(Change("add", None, item.page_part, (), item, _find_predecessor(items, found, number)))
        elif mark is not None and item.contents != base[mark]:
            is_removed = not item.text and item.contents[0] != base[mark][0]
            changes.append(
                Change(
                    "remove" if is_removed else "edit", mark, item.page_part, base[mark], None if is_removed else item
                )
            )
    gone = base.keys() - set(found.values())
    for page_part, marks in exported.items():
        changes += [Change("remove", mark, page_part, base[mark], None) for mark in marks if mark in gone]
    return changes


def judge(change: Change, item: Item | None) -> Verdict:
    """Return what to do with an edit or a removal; `item` is the one that the chat has, or None.

    A verdict without parts and without a reason says that the chat is already as the person wants it.
    """
    if change.item is None:
        if item is None:
            return Verdict()
        is_same = item.digests[0] == change.base[0]
        return Verdict(frozenset({0})) if is_same else Verdict(reason="the chat has another text since the export")
    if item is None:
        return Verdict(reason="the chat does not have it any more")
    differing = set[int]()
    for number, (was, wanted, has) in enumerate(
        zip(change.base, change.item.contents, item.contents, strict=True)  # items of a kind have equally many parts
    ):
        if wanted in (was, has):
            continue
        if has != was:
            return Verdict(reason="it was changed in the chat too since the export")
        differing.add(number)
    return Verdict(frozenset(differing))


def _match(exported: Exported, base: Mapping[str, Digests], items: Sequence[Item]) -> dict[int, str]:
    """Return, for each item that was also in the export, its mark in the export, by the item's index in `items`.

    An item keeps its mark, unless it was moved to the page of another kind of items. If several items have the same
    mark, the unchanged one keeps it, or else the first. An item of the export is missing if its mark is on no page. An
    item without a mark gets the mark of a missing item if both have the same kind and the same text, which is not
    empty. The remaining items without a mark are paired with the missing items between the same two neighbours
    (`_pair`).
    """
    found, taken = dict[int, str](), set[str]()
    marked = [
        (number, item.mark, item.contents)
        for number, item in enumerate(items)
        if item.mark is not None and item.mark in base and kind_of(item.mark) == item.kind
    ]
    unchanged = [one for one in marked if one[1] is not None and one[2] == base[one[1]]]
    for number, mark, _ in (*unchanged, *marked):
        if mark is not None and mark not in taken and number not in found:
            found[number] = mark
            taken.add(mark)
    missing = dict[tuple[str, str], list[str]]()
    for mark in (mark for marks in exported.values() for mark in marks if mark not in taken):
        missing.setdefault((kind_of(mark), base[mark][0]), []).append(mark)
    for number, item in enumerate(items):
        if item.mark is None and item.text and (same := missing.get((item.kind, item.digests[0]))):
            found[number] = same.pop(0)
    for page_part, marks in exported.items():
        found |= _pair(
            list(marks), [(number, item) for number, item in enumerate(items) if item.page_part == page_part], found
        )
    return found


def _pair(marks: Sequence[str], items: Sequence[tuple[int, Item]], found: Mapping[int, str]) -> dict[int, str]:
    """Return the marks of the missing items of a page part, by the numbers of unmarked items that replace them.

    Items of the same kind are paired in order, if they are between the same two neighbours. A neighbour is an item that
    both the export and the page have on this part.
    """
    neighbours = {found[number] for number, _ in items if number in found} & set(marks)
    known = set(found.values())
    former = _form_gaps(
        (mark, mark if mark in neighbours else None) for mark in marks if mark in neighbours or mark not in known
    )
    now = _form_gaps(
        (number, mark if (mark := found.get(number)) in neighbours else None)
        for number, item in items
        if number in found or item.mark is None
    )
    kinds = {number: item.kind for number, item in items if number not in found}
    return {
        number: mark
        for gap, numbers in now.items()
        for kind in sorted(set(kinds.values()))
        for number, mark in zip(
            (n for n in numbers if kinds.get(n) == kind),
            (mark for mark in former.get(gap, ()) if kind_of(mark) == kind),
            strict=False,
        )
    }


def _form_gaps(entries: Iterable[tuple[T, str | None]]) -> dict[tuple[str | None, str | None], list[T]]:
    """Return the entries between each two successive neighbours, by the marks of the two.

    An entry with a mark is a neighbour. For entries before the first neighbour, the first of the two marks is None. For
    entries after the last neighbour, the second one is None.
    """
    gaps = dict[tuple[str | None, str | None], list[T]]()
    before, waiting = None, list[T]()
    for entry, mark in entries:
        if mark is None:
            waiting.append(entry)
            continue
        gaps[before, mark] = waiting
        before, waiting = mark, []
    gaps[before, None] = waiting
    return gaps


def _find_predecessor(items: Sequence[Item], found: Mapping[int, str], number: int) -> str | None:
    """Return the mark of the nearest item of the export before an added item; None unless one is also after it."""
    page_part = items[number].page_part
    here = [(n, found[n]) for n, item in enumerate(items) if item.page_part == page_part and n in found]
    before = [mark for n, mark in here if n < number]
    return before[-1] if before and any(n > number for n, _ in here) else None


def _select_contents(kind: str, digests: Digests) -> Digests:
    return digests[: _CONTENTS.get(kind, 1)]


def kind_of(mark: str) -> str:
    """Return the kind of the item that a mark names."""
    return mark.rpartition("-")[0]
