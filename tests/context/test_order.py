import pytest

from app.context.order import arrange
from app.context.segments import ORDER, Segment
from tests.context.plans import entry, segment


def test_the_services_segments_stand_around_the_history_by_how_rarely_they_change() -> None:
    own = [name for name in ORDER if name not in ("history", "newest")]
    plan = arrange([segment(name) for name in reversed(own)], [entry(1)], entry(2), 1)
    assert [one.name for one in plan.prefix] == own[:-2]
    assert [one.name for one in plan.volatile] == own[-2:]
    assert not plan.in_chat


def test_a_callers_segment_stands_behind_the_one_it_names_also_when_that_is_missing() -> None:
    callers = [segment("b", after="user"), segment("a", after="user"), segment("c", after="facts")]
    plan = arrange([*callers, segment("memos"), segment("user")], [], None, 1)
    assert [one.name for one in plan.prefix] == ["user", "b", "a", "c", "memos"]


@pytest.mark.parametrize("after", ["history", "recalled", "time"])
def test_a_callers_segment_behind_the_history_is_volatile(after: str) -> None:
    plan = arrange([segment("note", after=after)], [entry(1)], None, 1)
    assert [one.name for one in plan.volatile] == ["note"]


def test_a_callers_segment_behind_newest_stands_in_the_chat_at_depth_0() -> None:
    plan = arrange([segment("note", after="newest", depth=3)], [entry(1)], None, 1)
    assert [(one.name, one.depth) for one in plan.in_chat] == [("note", 0)]


def test_what_stands_before_the_prompt_is_ahead_of_everything_also_of_what_follows_the_first() -> None:
    recap = segment("recap", after="before_prompt")
    plan = arrange([segment("note", after="system"), segment("system"), recap, segment("memos")], [], None, 1)
    assert [one.name for one in plan.prefix] == ["recap", "system", "note", "memos"]


@pytest.mark.parametrize("recap", [segment("recap"), segment("recap", after="before_prompt")])
def test_a_callers_segment_behind_the_recap_stands_in_the_order_wherever_the_recap_does(recap: Segment) -> None:
    plan = arrange([segment("note", after="recap"), segment("memos"), segment("user"), recap], [], None, 1)
    names = [one.name for one in plan.prefix if one.name != "recap"]
    assert names == ["user", "note", "memos"]


def test_a_segment_that_follows_an_unknown_one_is_refused() -> None:
    with pytest.raises(KeyError):
        arrange([segment("note", after="nothing")], [], None, 1)
