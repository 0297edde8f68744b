"""The registry is checked when it is put to use."""

from dataclasses import replace
from typing import Any

import pytest

from app.chats.settings import schema
from app.context.in_use import in_use
from app.layers.contribution import SegmentSpec
from app.layers.layer import Layer
from app.registry import LAYERS, find_faults, registered
from tests.layers.word_counts import LAYER, SEGMENT, WordSettings

MEMOS, DIARY = LAYERS[0], LAYERS[2]


class HistorySection(WordSettings):
    section = "history"


FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"name": "memos"}, ["the layer name 'memos' is used 2 times"]),
    ({"also_known_as": ("recap",)}, ["the layer name 'recap' is used 2 times"]),
    ({"name": "cut"}, ["the layer name 'cut' is reserved"]),
    ({"name": "messages"}, ["the layer name 'messages' is reserved"]),
    ({"name": "pauses"}, ["the layer name 'pauses' is reserved"]),
    (
        {"name": "Word counts"},
        [
            "the layer name 'Word counts' is not a valid SQL alias: use at most 60 lower-case letters, digits and _, "
            "and do not begin with a digit"
        ],
    ),
    ({"segments": MEMOS.segments}, ["the segment name 'memos' is used 2 times"]),
    ({"segments": (SEGMENT, SEGMENT)}, ["the segment name 'words' is used 2 times"]),
    ({"segments": (SegmentSpec("history", trimmed_before="time"),)}, ["the segment name 'history' is reserved"]),
    ({"segments": (replace(SEGMENT, after="?"),)}, ["the segment 'words' follows an unknown one: '?'"]),
    (
        {"segments": (replace(SEGMENT, trimmed_before=None),)},
        ["the segment 'words' is trimmed before an unknown one: None"],
    ),
    ({"tools": DIARY.tools}, ["the tool name 'save_memory' is used 2 times"]),
    ({"prompts": MEMOS.prompts}, ["the prompt name 'memo' is used 2 times"]),
    ({"edges": "batches"}, ["the edges name 'batches' is used 2 times"]),
    ({"edges": "every_8"}, ["the edges name 'every_8' is used 2 times"]),
    ({"changes_with": ("memos", "?")}, ["the layer 'words' changes with '?', which no layer is called"]),
    ({"settings": MEMOS.settings}, ["the settings section name 'memos' is used 2 times"]),
    ({"settings": HistorySection}, ["the settings section name 'history' is reserved"]),
]


def test_the_layers_of_the_service_can_be_used_together() -> None:
    assert find_faults(LAYERS) == []
    assert find_faults([*LAYERS, LAYER]) == []


@pytest.mark.parametrize(("changes", "faults"), FAULTS, ids=[faults[0] for _, faults in FAULTS])
def test_each_fault_is_one_line(changes: dict[str, Any], faults: list[str]) -> None:
    assert find_faults([*LAYERS, replace(LAYER, **changes)]) == faults


def test_a_faulty_registry_is_not_put_to_use() -> None:
    before = (schema(), in_use())
    faulty: Layer = replace(LAYER, name="cut", segments=MEMOS.segments)
    with pytest.raises(ValueError, match=r"'cut' is reserved\nthe segment name 'memos' is used"), registered(faulty):
        pytest.fail("the block must not be entered")
    assert (schema(), in_use()) == before
