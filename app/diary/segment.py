"""Contributes a diary to a context, from its cached texts on the line's row. Pure."""

from app.diary.held import keep_known
from app.diary.settings import DiarySettings
from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, View, place

SEGMENT = SegmentSpec(
    "diary",
    instruction='Under "Diary" stands what you yourself have written down, in your own voice, because it mattered to '
    "you.",
)
RECENT = SegmentSpec("diary_recent", after="history", trimmed_before="diary")


def contribute(view: View) -> Contributed:
    """Return the diary of the character whose prompt it is, or the unnamed diary if it is no character's prompt."""
    cached = view.cached.get("characters", {}).get(view.character or "")
    placement = place(DiarySettings.of(view.settings))
    if placement is None or not cached:
        return Contributed()
    segments = []
    if "text" in cached:
        item = Item(cached["text"], cached["tokens"], tuple(cached["sources"]))
        segments.append(Contribution("diary", (item,), placement=placement))
    recent = cached.get("recent")
    if recent and (recent := keep_known(recent, view.is_known)):
        item = Item(recent["text"], recent["tokens"], tuple(recent["sources"]))
        left_out_tokens = recent.get("left_out_tokens")
        left_out = (Item("", left_out_tokens, name="diary_recent"),) if left_out_tokens else ()
        segments.append(Contribution("diary_recent", (item,), left_out=left_out))
    return Contributed(segments)
