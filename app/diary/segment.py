"""Contributes a diary to a context, from its cached text on the line's row. Pure."""

from app.diary.settings import DiarySettings
from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, View, place

SEGMENT = SegmentSpec(
    "diary",
    instruction='Under "Diary" stands what you yourself have written down, in your own voice, because it mattered to '
    "you.",
)


def contribute(view: View) -> Contributed:
    """Return the diary of the character whose prompt it is, or the unnamed diary if it is no character's prompt."""
    diary = view.cached.get("characters", {}).get(view.character or "")
    placement = place(DiarySettings.of(view.settings))
    if placement is None or not diary:
        return Contributed()
    item = Item(diary["text"], diary["tokens"], tuple(diary["sources"]))
    return Contributed((Contribution("diary", (item,), placement=placement),))
