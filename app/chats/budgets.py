"""Selects what fits into a layer's own budget. Pure."""

from collections.abc import Sequence


def choose_newest_first(costs: Sequence[int | None], limit: int | None) -> set[int]:
    """Return the indexes of `costs` (tokens, oldest first) that fit into `limit` tokens; None is no limit.

    The newest are chosen first. A cost of None is skipped and uses no tokens. The first cost that would exceed the
    limit ends the selection, even if an older one would still fit.
    """
    if limit is None:
        return {index for index, cost in enumerate(costs) if cost is not None}
    chosen = set()
    spent = 0
    for index in reversed(range(len(costs))):
        cost = costs[index]
        if cost is None:
            continue
        spent += cost
        if spent > limit:
            break
        chosen.add(index)
    return chosen
