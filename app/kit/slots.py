"""Who gets the free model slots: no tenant more than half of all while others wait, and its lines in turn. Pure."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def share_slots(*, total: int, running: Mapping[str, int], waiting: Mapping[str, int]) -> dict[str, int]:
    """How many more things of each tenant may start now.

    Args:
        total: All slots.
        running: Slots in use, by tenant.
        waiting: Things that could start, by tenant; among equals the first comes first.

    While others wait, nobody is dealt more than half of all slots (at least one); what nobody else can use
    is free for all.

    """
    return deal(total - sum(running.values()), running=running, waiting=waiting, at_most=max(1, total // 2))


def deal(
    slots: int, *, running: Mapping[Name, int], waiting: Mapping[Name, int], at_most: int | None = None
) -> dict[Name, int]:
    """Deal `slots` one at a time to whoever holds fewest, the first in `waiting` among equals.

    Nobody who holds `at_most` is dealt another while somebody else waits.
    """
    held = dict(running)
    given: dict[Name, int] = {}
    left = {name: count for name, count in waiting.items() if count > 0}
    for _ in range(slots):
        allowed = [name for name in left if len(left) == 1 or at_most is None or held.get(name, 0) < at_most]
        if not allowed:
            break
        name = min(allowed, key=lambda candidate: held.get(candidate, 0))
        held[name] = held.get(name, 0) + 1
        given[name] = given.get(name, 0) + 1
        left[name] -= 1
        if left[name] == 0:
            del left[name]
    return given
