"""Checks the pages of sections before anything on them is changed in the chat. Pure.

These are the pages of the summary, the memos, the scenes and the diaries. A heading or a mark ends a text there. One
that a person adds or removes by mistake would therefore cut off a text, or join two. So nothing on such a page is
changed unless each item of the export has its heading, its mark and its position. Memos and entries can also be added
and removed.
"""

from collections.abc import Mapping, Sequence

from app.vault.items import Digests, Item, kind_of
from app.vault.parsing import Stray

NEVER_REMOVED = {
    "summary": "a summary cannot be removed; POST …/summary/regenerate with replace_edited makes another one",
    "recap": "the running recap is removed by deleting its versions (DELETE …/recap/versions/{version})",
    "scene": "a scene is removed by deleting its break (DELETE …/scenes/breaks/{seq}), and its recap with it",
}
"""Why an item cannot be removed, and what to do instead, by its kind."""

_UNCHANGED = "nothing on this page was changed"
_ADVICE = (
    f"{_UNCHANGED}; keep its headings and marks as the export wrote them, "
    "and write \\# instead of # where a line of a text begins"
)
_NO_SCENE = "a scene begins with a break, which PUT …/scenes/breaks/{seq} sets, and is found by its mark"
_NO_TEXT = "a heading without a text"
_OTHER_HEADINGS = {
    "summary": "the page does not have the headings of the export",
    "memo": "the heading is not the one that its mark has in the export",
    "entry": "the heading, or the one of its diary, is not the one that its mark has in the export",
    "scene": "the heading has to begin with the number of the scene, and a title follows it, as in ## 1 · The inn",
}


def find_problems(
    page: str, exported: Mapping[str, Digests], items: Sequence[Item], strays: Sequence[Stray]
) -> list[str]:
    """Return a line for each reason not to change anything; each names the page, and a line or a mark on it.

    `exported` has the hashes of the items that the export wrote on the page, by mark. The result is empty if the page
    has the same items in the same order under the same headings. A summary or a running recap can be new. Memos and
    entries can be new, too, and can be missing with their headings.
    """
    if strays:
        return [f"{page}, line {strays[0].line}: is no part of an item; {_ADVICE}"]
    marks, seen, found = {item.mark for item in items}, set[str](), list[str]()
    missing = {digests[-1]: mark for mark, digests in exported.items() if mark not in marks}
    for item in items:
        if reason := _find_reason(exported, item, seen, missing):
            found.append(f"{page}, line {item.line}: {reason}; {_ADVICE}")
        seen.add(str(item.mark))
    if found := found or _find_doubtful(page, exported, items):
        return found
    if gone := [mark for mark in exported if mark not in seen and kind_of(mark) in NEVER_REMOVED]:
        return [f"{page}, ^{mark}: {NEVER_REMOVED[kind_of(mark)]}; {_UNCHANGED}" for mark in gone]
    known = [item for item in items if item.mark in exported]
    ordered = [mark for mark in exported if mark in seen]
    moved = [item for item, mark in zip(known, ordered, strict=True) if item.mark != mark]
    return [f"{page}, line {moved[0].line}: is not where it was in the export; {_UNCHANGED}"] if moved else []


def _find_doubtful(page: str, exported: Mapping[str, Digests], items: Sequence[Item]) -> list[str]:
    """Return a line for each new memo or entry under a heading of the export.

    It can be the beginning of a text that has its own heading as a line.
    """
    owners = {digests[-1]: mark for mark, digests in exported.items()}
    return [
        f"{page}, line {item.line}: the heading is that of ^{mark}, and a new text needs another one; {_ADVICE}"
        for item in items
        if item.kind in ("memo", "entry") and item.mark not in exported and (mark := owners.get(item.digests[-1]))
    ]


def _find_reason(exported: Mapping[str, Digests], item: Item, seen: set[str], missing: Mapping[str, str]) -> str:
    """Return what is wrong with an item, or an empty text.

    `seen` has the marks of the items before it. `missing` has the marks that are missing on the page, by the hashes of
    the headings.
    """
    if item.mark is None or item.mark not in exported:
        return _find_reason_of_new(item, missing)
    if item.mark in seen:
        return f"^{item.mark} is on this page twice"
    is_same = item.kind not in _OTHER_HEADINGS or item.digests[-1] == exported[item.mark][-1]
    return "" if is_same else _OTHER_HEADINGS[item.kind]


def _find_reason_of_new(item: Item, missing: Mapping[str, str]) -> str:
    """Return what is wrong with an item that the export did not write, or an empty text."""
    if item.kind == "scene":
        return _NO_SCENE
    if item.kind not in ("memo", "entry"):
        return ""
    if mark := missing.get(item.digests[-1]):
        return f"its mark, ^{mark}, is missing, or is not on a line of its own as in the export"
    return "" if item.text else _NO_TEXT
