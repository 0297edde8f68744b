"""Merges the contributions of all layers into one for each segment. Pure."""

from collections.abc import Sequence
from operator import attrgetter

from app.layers.contribution import Contribution


def merge_contributions(contributions: Sequence[Contribution]) -> list[Contribution]:
    """Return one contribution for each segment, with the items sorted by their `order`.

    `contributions` are in the order of the registry; items with the same `order` keep this order. If several layers
    contribute to a segment, the first layer sets its placement, and the first layer with a heading sets its heading.
    """
    by_segment: dict[str, list[Contribution]] = {}
    for one in contributions:
        by_segment.setdefault(one.segment, []).append(one)
    return [_merge(parts) for parts in by_segment.values()]


def _merge(parts: Sequence[Contribution]) -> Contribution:
    if len(parts) == 1 and len(parts[0].items) < 2:
        return parts[0]
    items = [item for one in parts for item in one.items]
    items.sort(key=attrgetter("order"))
    return Contribution(
        parts[0].segment,
        items,
        heading=next((one.heading for one in parts if one.heading), ""),
        left_out=[item for one in parts for item in one.left_out],
        placement=parts[0].placement,
        is_window=any(one.is_window for one in parts),
    )
