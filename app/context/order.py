"""Arranges segments: each at its default position in the order of segments, unless it sets another position. Pure."""

from collections.abc import Sequence

from app.context.segments import Arrangement, HistoryMessage, Segment
from app.context.tables import BASE, SegmentTables

_AMONG_MESSAGES = frozenset({"in_chat", "newest"})
_AHEAD = (-1, 0)


def sort_key_of(segment: Segment, tables: SegmentTables = BASE) -> tuple[int, int]:
    """Return the sort key of a segment.

    The key is (its index in the order, 0), (the index of the segment that it follows, 1), or (-1, 0) if it goes before
    everything. The index of a followed segment is its default index, even if that segment is placed elsewhere or is
    missing. Raises ValueError for an unknown name.
    """
    if segment.after is None:
        return tables.order.index(segment.name), 0
    if segment.after == "before_prompt":
        return _AHEAD
    return tables.order.index(segment.after), 1


def arrange(
    segments: Sequence[Segment],
    history: Sequence[HistoryMessage],
    newest: HistoryMessage | None,
    anchor_seq: int,
    tables: SegmentTables = BASE,
) -> Arrangement:
    """Arrange `segments`, given in any order, around the messages. Segments that follow the same one keep their order.

    A segment that follows `newest` becomes an in-chat segment at depth 0. Raises ValueError if a segment follows an
    unknown segment.
    """
    history_at = tables.order.index("history")
    placed = sorted(
        ((sort_key_of(one, tables), one) for one in segments if one.after not in _AMONG_MESSAGES), key=lambda at: at[0]
    )
    return Arrangement(
        prefix=[one for at, one in placed if at[0] < history_at],
        history=history,
        in_chat=[
            one._replace(depth=0) if one.after == "newest" else one for one in segments if one.after in _AMONG_MESSAGES
        ],
        volatile=[one for at, one in placed if at[0] >= history_at],
        newest=newest,
        anchor_seq=anchor_seq,
    )
