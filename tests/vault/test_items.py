"""What a person changed on the pages of a vault is found, and what the chat changed too is left alone."""

import pytest

from app.vault.items import Change, Item, Verdict, compare, judge

PAGE = "memos.md"


def _item(text: str, mark: str | None = None, page_part: str = PAGE) -> Item:
    return Item("memo", page_part, 1, mark, "", (text,))


def _exported(*texts: str) -> dict[str, dict[str, tuple[str, ...]]]:
    return {PAGE: {f"memo-{text}": _item(text).digests for text in texts}}


def _changes(exported: str, *now: tuple[str, str | None]) -> list[tuple[str, str | None, str | None]]:
    items = [_item(text, mark) for text, mark in now]
    return [(one.action, one.mark, one.item.text if one.item else None) for one in compare(_exported(*exported), items)]


@pytest.mark.parametrize(
    ("exported", "now", "changes"),
    [
        ("ab", [("a", "memo-a"), ("b", "memo-b")], []),
        ("ab", [("b", "memo-b"), ("a", "memo-a")], []),
        ("ab", [("a", "memo-a"), ("c", "memo-b")], [("edit", "memo-b", "c")]),
        ("ab", [("a", "memo-a")], [("remove", "memo-b", None)]),
        ("ab", [("a", "memo-a"), ("", "memo-b")], [("remove", "memo-b", None)]),
        ("ab", [("a", "memo-a"), ("x", None), ("b", "memo-b")], [("add", None, "x")]),
        ("ab", [("a", None), ("b", None)], []),
        ("abc", [("a", "memo-a"), ("x", None), ("c", "memo-c")], [("edit", "memo-b", "x")]),
        ("abc", [("c", "memo-c"), ("x", None), ("a", "memo-a")], [("add", None, "x"), ("remove", "memo-b", None)]),
        ("abcd", [("x", None), ("y", None), ("d", "memo-d")],
         [("edit", "memo-a", "x"), ("edit", "memo-b", "y"), ("remove", "memo-c", None)]),
        ("a", [("x", "memo-a"), ("a", "memo-a")], [("add", None, "x")]),
        ("a", [("x", "memo-a"), ("y", "memo-a")], [("edit", "memo-a", "x"), ("add", None, "y")]),
        ("a", [("a", "memo-a"), ("x", "memo-0")], [("add", None, "x")]),
        ("a", [("x", "memo-0")], [("add", None, "x"), ("remove", "memo-a", None)]),
        ("", [("x", None), ("", None)], [("add", None, "x")]),
    ],
)  # fmt: skip
def test_changes_are_found(
    exported: str, now: list[tuple[str, str | None]], changes: list[tuple[str, str | None, str | None]]
) -> None:
    assert _changes(exported, *now) == changes


def test_an_item_without_a_mark_keeps_its_id_in_another_place() -> None:
    assert compare(_exported("a"), [_item("a", page_part="other.md")]) == []


def test_an_item_without_a_mark_never_gets_that_of_another_kind() -> None:
    fact, block, note = Item("fact", PAGE, 1, "fact-1", "brother", ("Tomas.",)), "Sails at dawn.", "Fears storms."
    exported = {PAGE: {"fact-1": fact.digests, "fact-2": _item("x").digests, "block-1": _item(block).digests}}
    now = [fact, Item("block", PAGE, 2, None, "user", (note,))]
    assert [(one.action, one.mark) for one in compare(exported, now)] == [("edit", "block-1"), ("remove", "fact-2")]


def test_an_item_that_is_moved_to_another_page_is_new_there() -> None:
    scene = Item("scene", "scenes.md", 1, "scene-1", "", ("They met.", "The inn"))
    memo = Item("memo", PAGE, 1, "scene-1", "", ("They met.",))
    changes = compare({"scenes.md": {"scene-1": scene.digests}}, [memo])
    assert [(one.action, one.mark, one.item) for one in changes] == [("add", None, memo), ("remove", "scene-1", None)]


def test_an_added_item_follows_another_unless_it_is_last() -> None:
    items = [_item("a", "memo-a"), _item("x"), _item("y"), _item("b", "memo-b"), _item("z")]
    assert [one.after for one in compare(_exported("a", "b"), items)] == ["memo-a", "memo-a", None]


def test_an_item_that_the_chat_also_changed_is_skipped() -> None:
    was, wanted, other = (Item("memory", "d", 1, "memory-1", "", (text, (None, ()), False)) for text in "abc")
    tagged = Item("memory", "d", 1, "memory-1", "", ("a", (None, ("t",)), False))
    edit = Change("edit", "memory-1", "d", was.digests, wanted)
    assert judge(edit, was) == judge(edit, tagged) == Verdict(frozenset({0}))
    assert judge(edit, wanted) == Verdict()
    assert judge(edit, other).reason
    assert judge(edit, None).reason
    remove = Change("remove", "memory-1", "d", was.digests, None)
    assert judge(remove, was) == judge(remove, tagged) == Verdict(frozenset({0}))
    assert judge(remove, None) == Verdict()
    assert judge(remove, other).reason


def test_scenes_without_texts_are_not_matched_by_them() -> None:
    exported, now = (
        [
            Item("scene", "scenes.md", n, f"scene-{n}" if mark else None, "", (text, f"T{n}", f"{n}"))
            for n, text in texts
        ]
        for mark, texts in ((True, [(1, ""), (2, "")]), (False, [(1, "They met."), (2, "")]))
    )
    changes = compare({"scenes.md": {str(one.mark): one.digests for one in exported}}, now)
    assert [(one.action, one.mark) for one in changes] == [("edit", "scene-1")]
