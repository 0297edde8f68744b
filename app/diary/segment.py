"""Contributes a diary to a context, from its cached texts on the line's row. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from app.diary.held import Held, word_known
from app.diary.settings import DiarySettings
from app.diary.shared.merging import Choice, Own, choose_until, read_others, word_merged
from app.diary.wording import Written
from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, View, placement_of

SEGMENT = SegmentSpec(
    "diary",
    instruction='"Diary" is what you yourself have written down, in your own voice, because it mattered to you.',
)
RECENT = SegmentSpec("diary_recent", after="history", trimmed_before="diary")


def contribute(view: View) -> Contributed:
    """Return the diary of the character for whom the prompt is made.

    Without a character, this is the unnamed diary. A chat has one while it names no characters.
    """
    cached = view.cached.get("characters", {}).get(view.character or "", {})
    settings = DiarySettings.of(view.settings)
    placement, recent_placement = placement_of(settings), placement_of(settings.recent)
    queried = orjson.loads(view.queried) if view.queried else {}
    shared = queried.get("shared") if view.character else None
    if placement is None or not (cached or shared):
        return Contributed()
    if shared or "own" in cached:
        cached = _merge(view, cached, queried)
    elif view.before_seq is not None and "held" in cached:
        cached = _before(view, cached, queried)
    segments = []
    if "text" in cached:
        item = Item(cached["text"], cached["tokens"], tuple(cached["sources"]))
        segments.append(Contribution("diary", (item,), placement=placement))
    recent = cached.get("recent")
    if recent and recent_placement is not None:
        item = Item(recent["text"], recent["tokens"], tuple(recent["sources"]))
        left_out_tokens = recent.get("left_out_tokens")
        left_out = (Item("", left_out_tokens, name="diary_recent"),) if left_out_tokens else ()
        segments.append(Contribution("diary_recent", (item,), left_out=left_out, placement=recent_placement))
    return Contributed(segments)


def _merge(view: View, cached: Mapping[str, Any], queried: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the segments of a diary that is shared with the user's other chats.

    Until the diary is cached, the segment `diary` has the entries of other chats from before this chat began.
    """
    lines = DiarySettings.of(view.settings).lines
    shared = queried.get("shared") or {"rows": (), "began_us": 0}
    own = Own.from_json(cached["own"]) if "own" in cached else Own(shared["time_zone"])
    if view.before_seq is not None and "held" in cached:
        held = Held.from_json(cached["held"])
        knows_diary = view.is_known(cached.get("last_seq", 0))
        own = own.before(_read_known(view, queried), held, knows_diary=knows_diary)
    choice = Choice.from_json(cached["shared"]) if "shared" in cached else Choice()
    others = read_others(shared, view.character, choice.held)
    if "shared" not in cached:
        choice = choose_until(own, others, lines, shared["began_us"])
    return word_merged(own, others, choice, lines)


def _before(view: View, cached: Mapping[str, Any], queried: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the segments of the diary for a context that ends before a message."""
    known = _read_known(view, queried)
    lines, knows_diary = DiarySettings.of(view.settings).lines, view.is_known(cached.get("last_seq", 0))
    return word_known(cached, known, queried["time_zone"], lines, knows_diary=knows_diary)


def _read_known(view: View, queried: Mapping[str, Any]) -> list[Written]:
    """Return the newest entries of the diary from before the message that the context is for."""
    enabled = DiarySettings.of(view.settings).enabled
    return [
        Written(UUID(entry_id), number, at_seq, content, datetime.fromisoformat(dated_at), created_us)
        for character, origin, entry_id, number, at_seq, content, dated_at, created_us in queried["entries"] or ()
        if character == (view.character or "") and (enabled or origin != "model")
    ]
