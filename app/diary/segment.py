"""What a diary puts into a context, from what the chat's row holds of it. Pure."""

from app.diary.settings import DiarySettings
from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, View, place

SEGMENT = SegmentSpec(
    "diary",
    instruction='Under "Diary" stands what you yourself have written down, in your own voice, because it mattered to '
    "you.",
)


def contribute(view: View) -> Contributed:
    """The diary of the character whose prompt it is; without one, that of a chat which names no characters."""
    diary = view.cached.get("characters", {}).get(view.character or "")
    placement = place(DiarySettings.of(view.settings))
    if placement is None or not diary:
        return Contributed()
    item = Item(diary["text"], diary["tokens"], tuple(diary["sources"]))
    return Contributed((Contribution("diary", (item,), placement=placement),))
