"""Contributes a diary to a context, from its cached texts on the line's row. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from app.diary.held import word_known
from app.diary.settings import DiarySettings
from app.diary.wording import Written
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
    if view.before_seq is not None and "held" in cached:
        cached = _before(view, cached)
    segments = []
    if "text" in cached:
        item = Item(cached["text"], cached["tokens"], tuple(cached["sources"]))
        segments.append(Contribution("diary", (item,), placement=placement))
    recent = cached.get("recent")
    if recent:
        item = Item(recent["text"], recent["tokens"], tuple(recent["sources"]))
        left_out_tokens = recent.get("left_out_tokens")
        left_out = (Item("", left_out_tokens, name="diary_recent"),) if left_out_tokens else ()
        segments.append(Contribution("diary_recent", (item,), left_out=left_out))
    return Contributed(segments)


def _before(view: View, cached: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the segments of the diary for a context before a message."""
    settings = DiarySettings.of(view.settings)
    found = orjson.loads(view.queried)
    known = [
        Written(UUID(entry_id), number, at_seq, content, datetime.fromisoformat(dated_at))
        for character, origin, entry_id, number, at_seq, content, dated_at in found["entries"] or ()
        if character == (view.character or "") and (settings.enabled or origin != "model")
    ]
    knows_diary = view.is_known(cached.get("last_seq", 0))
    return word_known(cached, known, found["time_zone"], settings.lines, knows_diary=knows_diary)
