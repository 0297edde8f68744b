"""Checks the pages of the summary and of the scenes before anything on them is changed in the chat. Pure.

A heading or a mark ends a text. One that a person adds or removes by mistake would therefore cut off a text, or join
two. So nothing on these pages is changed unless they have the items of the export, under the same headings.
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
_OTHER_HEADINGS = {
    "summary": "the page does not have the headings of the export",
    "scene": "the heading has to begin with the number of the scene, and a title follows it, as in ## 1 · The inn",
}


def find_problems(
    page: str, exported: Mapping[str, Digests], items: Sequence[Item], strays: Sequence[Stray]
) -> list[str]:
    """Return a line for each reason not to change anything; each names the page, and a line or a mark on it.

    `exported` has the hashes of the items that the export wrote on the page, by mark. The result is empty if the page
    has the same items in the same order under the same headings. A summary or a running recap can be new.
    """
    if strays:
        return [f"{page}, line {strays[0].line}: is no part of an item; {_ADVICE}"]
    seen, found = set[str](), list[str]()
    for item in items:
        if reason := _find_reason(exported, item, seen):
            found.append(f"{page}, line {item.line}: {reason}; {_ADVICE}")
        seen.add(str(item.mark))
    if found:
        return found
    if gone := [mark for mark in exported if mark not in seen]:
        return [f"{page}, ^{mark}: {NEVER_REMOVED[kind_of(mark)]}; {_UNCHANGED}" for mark in gone]
    known = [item for item in items if item.mark in exported]
    moved = [item for item, mark in zip(known, exported, strict=True) if item.mark != mark]
    return [f"{page}, line {moved[0].line}: is not where it was in the export; {_UNCHANGED}"] if moved else []


def _find_reason(exported: Mapping[str, Digests], item: Item, seen: set[str]) -> str:
    """Return what is wrong with an item, given the marks of the items before it; empty if nothing is."""
    if item.mark is None or item.mark not in exported:
        return _NO_SCENE if item.kind == "scene" else ""
    if item.mark in seen:
        return f"^{item.mark} is on this page twice"
    is_same = item.kind not in _OTHER_HEADINGS or item.digests[-1] == exported[item.mark][-1]
    return "" if is_same else _OTHER_HEADINGS[item.kind]
