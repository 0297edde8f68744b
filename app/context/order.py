"""Where each segment stands: what rarely changes first, unless it is told to stand elsewhere. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from app.context.segments import ORDER, Entry, Plan, Segment

_PLACES = {name: place for place, name in enumerate(ORDER)}
_HISTORY = _PLACES["history"]
_AMONG_MESSAGES = frozenset({"in_chat", "newest"})
_AHEAD = (-1, 0)


def place_of(segment: Segment) -> tuple[int, int]:
    """(Its place in `ORDER`, 0), or (the place of what it follows, 1). KeyError for an unknown name.

    What it follows has that place also while it stands elsewhere, or is missing.
    """
    if segment.after is None:
        return _PLACES[segment.name], 0
    if segment.after == "before_prompt":
        return _AHEAD
    return _PLACES[segment.after], 1


def arrange(segments: Sequence[Segment], history: Sequence[Entry], newest: Entry | None, anchor_seq: int) -> Plan:
    """Put `segments`, in any order, around the messages; those that follow the same one keep their order.

    What follows `newest` stands in the chat at depth 0. Raises KeyError if one follows an unknown name.
    """
    placed = sorted((one for one in segments if one.after not in _AMONG_MESSAGES), key=place_of)
    return Plan(
        prefix=[one for one in placed if place_of(one)[0] < _HISTORY],
        history=history,
        in_chat=[
            replace(one, depth=0) if one.after == "newest" else one for one in segments if one.after in _AMONG_MESSAGES
        ],
        volatile=[one for one in placed if place_of(one)[0] >= _HISTORY],
        newest=newest,
        anchor_seq=anchor_seq,
    )
