import re

import pytest

from app.context.order import arrange
from app.context.segments import Segment
from app.context.tables import ORDER, SegmentTables
from app.layers.contribution import SegmentSpec
from tests.context.arrangements import entry, segment


def test_segments_are_ordered_by_how_rarely_they_change() -> None:
    own = [name for name in ORDER if name not in ("history", "newest")]
    arrangement = arrange([segment(name) for name in reversed(own)], [entry(1)], entry(2), 1)
    assert [one.name for one in arrangement.prefix] == own[:-2]
    assert [one.name for one in arrangement.volatile] == own[-2:]
    assert not arrangement.in_chat


def test_a_callers_segment_follows_the_one_it_names_if_missing() -> None:
    callers = [segment("b", after="user"), segment("a", after="user"), segment("c", after="facts")]
    arrangement = arrange([*callers, segment("memos"), segment("user")], [], None, 1)
    assert [one.name for one in arrangement.prefix] == ["user", "b", "a", "c", "memos"]


@pytest.mark.parametrize("after", ["history", "recalled", "time"])
def test_a_callers_segment_after_the_history_is_volatile(after: str) -> None:
    arrangement = arrange([segment("note", after=after)], [entry(1)], None, 1)
    assert [one.name for one in arrangement.volatile] == ["note"]


def test_a_callers_segment_after_newest_is_at_depth_0() -> None:
    arrangement = arrange([segment("note", after="newest", depth=3)], [entry(1)], None, 1)
    assert [(one.name, one.depth) for one in arrangement.in_chat] == [("note", 0)]


def test_segments_before_the_prompt_come_first() -> None:
    recap = segment("recap", after="before_prompt")
    arrangement = arrange([segment("note", after="system"), segment("system"), recap, segment("memos")], [], None, 1)
    assert [one.name for one in arrangement.prefix] == ["recap", "system", "note", "memos"]


@pytest.mark.parametrize("recap", [segment("recap"), segment("recap", after="before_prompt")])
def test_a_callers_segment_after_the_recap_keeps_its_position(recap: Segment) -> None:
    arrangement = arrange([segment("note", after="recap"), segment("memos"), segment("user"), recap], [], None, 1)
    names = [one.name for one in arrangement.prefix if one.name != "recap"]
    assert names == ["user", "note", "memos"]


def test_a_segment_that_follows_an_unknown_one_is_refused() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        arrange([segment("note", after="nothing")], [], None, 1)


def test_a_layer_inserts_its_segment_in_both_tables() -> None:
    words = SegmentSpec("words", 'Under "Words" are counts.', after="pinned", trimmed_before="diary")
    tables = SegmentTables.of([words, SegmentSpec("memos", "Memos."), SegmentSpec("recap", "Recap.", leads=True)])
    assert tables.order[tables.order.index("pinned") + 1] == "words"
    assert tables.trims[tables.trims.index("diary") - 1] == "words"
    assert list(tables.instructions) == ["recap", "words", "memos"]
    arrangement = arrange([segment("words"), segment("diary"), segment("pinned")], [], None, 1, tables)
    assert [one.name for one in arrangement.prefix] == ["pinned", "words", "diary"]


def test_segments_at_one_position_are_in_registry_order() -> None:
    a, b, c = (SegmentSpec(name, after="pinned", trimmed_before="diary") for name in "abc")
    after_a = SegmentSpec("a2", after="a", trimmed_before="a")
    tables = SegmentTables.of([after_a, a, b, c])
    at = tables.order.index("pinned")
    assert tables.order[at : at + 6] == ("pinned", "a", "a2", "b", "c", "diary")
    at = tables.trims.index("diary")
    assert tables.trims[at - 4 : at + 1] == ("a2", "a", "b", "c", "diary")


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (SegmentSpec("words", trimmed_before="time"), "the segment 'words' follows an unknown one: None"),
        (SegmentSpec("words", after="?", trimmed_before="time"), "the segment 'words' follows an unknown one: '?'"),
        (SegmentSpec("words", after="words", trimmed_before="time"), "the segment 'words' follows an unknown one: "),
        (SegmentSpec("words", after="user"), "the segment 'words' is trimmed before an unknown one: None"),
        (SegmentSpec("words", after="user", trimmed_before="?"), "'words' is trimmed before an unknown one: '?'"),
    ],
)
def test_a_layers_segment_without_a_position_is_refused(spec: SegmentSpec, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        SegmentTables.of([spec])
