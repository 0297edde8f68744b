"""Several layers contribute to one segment."""

from collections.abc import Sequence

import pytest

from app.context.budget import BudgetTooSmallError, fit
from app.context.formats import render
from app.context.merging import merge_contributions
from app.context.parts import Fitted, Parts
from app.context.segments import Format
from app.kit.tokens import count_tokens
from app.layers.contribution import Contribution, Item, Placement, TrimGroup
from tests.context.arrangements import render_options, segment, texts_of
from tests.talk import FORMATS


def item(text: str, *order: int, pinned: bool = False, group: TrimGroup | None = None) -> Item:
    return Item(text, count_tokens(text), (f"source:{text}",), order=order, pinned=pinned, group=group)


def facts(*items: Item, heading: str = "## Facts", left_out: Sequence[Item] = ()) -> Contribution:
    return Contribution("facts", items, heading, left_out)


def fits(max_tokens: int, *contributions: Contribution, fmt: Format = "segments") -> Fitted:
    return fit(Parts(segments=[segment("system")], contributions=contributions), max_tokens, render_options(fmt))


def every_fit(*contributions: Contribution) -> list[Fitted]:
    """What is left with ever smaller budgets, each once."""
    found: dict[tuple[str, ...], Fitted] = {}
    for max_tokens in range(200, 0, -1):
        try:
            left = fits(max_tokens, *contributions)
        except BudgetTooSmallError:
            break
        found.setdefault(tuple(one.name for one in left.omitted), left)
    return list(found.values())


def words_of(left: Fitted) -> list[str]:
    return [one.text for whole in left.contributions for one in whole.items]


def test_items_are_sorted_by_order_then_by_layer() -> None:
    (merged,) = merge_contributions(
        [facts(item("a3", 3), item("a1", 1), item("a2", 2)), facts(item("b1", 1), item("b0"), heading="## Known")]
    )
    assert [one.text for one in merged.items] == ["b0", "a1", "b1", "a2", "a3"]
    assert merged.heading == "## Facts"


def test_a_segment_is_merged_at_its_first_layer() -> None:
    late = Contribution("memos", [item("m")], placement=Placement("in_chat", 3), is_window=True)
    first, second = merge_contributions(
        [facts(item("a"), left_out=[item("x")], heading=""), late, facts(item("b"), left_out=[item("y")])]
    )
    assert (first.segment, first.heading, second.segment) == ("facts", "## Facts", "memos")
    assert (second.placement, second.is_window) == (late.placement, True)
    assert [one.text for one in first.items] == ["a", "b"]
    assert [one.text for one in first.left_out] == ["x", "y"]


@pytest.mark.parametrize("fmt", FORMATS)
def test_two_layers_share_one_segment(fmt: Format) -> None:
    left = fits(200, facts(item("Kai has a key.")), facts(item("The lamp is out.")), fmt=fmt)
    answer = render(left.layout)
    assert [row["name"] for row in answer.segments] == ["system", "facts"]
    assert answer.segments[1]["sources"] == ["source:Kai has a key.", "source:The lamp is out."]
    text = "\n".join(texts_of(answer))
    assert [text.count(words) for words in ("## Facts", "Kai has a key.", "The lamp is out.")] == [1, 1, 1]


def test_a_tight_budget_drops_and_lists_groups_of_both_layers() -> None:
    ours = facts(*[item(f"Our fact {n}.", n, group=TrimGroup(n, f"facts {n}")) for n in (1, 2)])
    theirs = facts(*[item(f"Their fact {n}.", n, group=TrimGroup(n, f"their facts {n}")) for n in (1, 2)])
    names = ["facts 1", "their facts 1", "facts 2", "their facts 2"]
    links = every_fit(ours, theirs)
    assert [[one.name for one in left.omitted] for left in links] == [names[:n] for n in range(5)]
    assert [words_of(left) for left in links] == [
        ["Our fact 1.", "Their fact 1.", "Our fact 2.", "Their fact 2."],
        ["Their fact 1.", "Our fact 2.", "Their fact 2."],
        ["Our fact 2.", "Their fact 2."],
        ["Their fact 2."],
        [],
    ]
    for left in links:
        text = "\n".join(texts_of(render(left.layout)))
        assert all(text.count(words) == 1 for words in words_of(left))
        assert sum(text.count(one.text) for one in (*ours.items, *theirs.items)) == len(words_of(left))


def test_items_without_a_group_go_together_after_the_groups() -> None:
    ours = facts(item("Our first fact.", 1), item("Our second fact.", 2))
    theirs = facts(item("Their fact.", 1, group=TrimGroup(1, "their facts")))
    links = every_fit(ours, theirs)
    assert [one.name for one in links[-1].omitted] == ["their facts", "facts"]
    assert [words_of(left) for left in links[1:]] == [["Our first fact.", "Our second fact."], []]


def test_items_without_a_group_go_as_a_whole_segment() -> None:
    links = every_fit(facts(item("Our fact.")), facts(item("Their fact.")))
    assert [words_of(left) for left in links] == [["Our fact.", "Their fact."], []]
    (omission,) = links[-1].omitted
    assert (omission.name, omission.tokens) == ("facts", count_tokens("## Facts\n\nOur fact.\n\nTheir fact."))


def test_pinned_items_go_last() -> None:
    ours = facts(item("A pinned fact.", 1, pinned=True), item("A fact.", 2))
    theirs = facts(item("A later fact.", 3, pinned=True, group=TrimGroup(0, "later facts")))
    links = every_fit(ours, theirs)
    assert [one.name for one in links[-1].omitted] == ["facts", "later facts", "pinned facts"]
    assert words_of(links[1]) == ["A pinned fact.", "A later fact."]
