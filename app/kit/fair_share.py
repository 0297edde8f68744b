"""Fair allocation of a worker's free slots, first among tenants, then among each tenant's owners. Pure.

In each slot, the worker runs one work item at a time. The owner of an item is the line, user or tenant that it is for.
"""

from collections.abc import Hashable, Mapping
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def allocate_to_owners(
    *,
    total: int,
    running: Mapping[str, Mapping[Name, int]],
    waiting: Mapping[str, Mapping[Name, int]],
) -> dict[Name, int]:
    """Return how many more items of each owner may start now. Slots go to tenants first, then to their owners.

    Args:
        total: The total number of slots.
        running: Slots in use, by tenant and owner.
        waiting: Items that could start, by tenant and owner. Ties go to the first in this order.

    """
    shares = allocate_to_tenants(
        total=total,
        running={tenant: sum(owners.values()) for tenant, owners in running.items()},
        waiting={tenant: sum(owners.values()) for tenant, owners in waiting.items()},
    )
    allocated: dict[Name, int] = {}
    for tenant, share in shares.items():
        allocated |= allocate(share, running=running.get(tenant, {}), waiting=waiting[tenant])
    return allocated


def allocate_to_tenants(*, total: int, running: Mapping[str, int], waiting: Mapping[str, int]) -> dict[str, int]:
    """Return how many more items of each tenant may start now.

    While items of another tenant are left, a tenant gets at most half of all slots (at least one). So if two tenants
    share an odd number of slots, one slot can stay free. A tenant has no such limit once only its own items are left.

    Args:
        total: The total number of slots.
        running: Slots in use, by tenant.
        waiting: Items that could start, by tenant. Ties go to the first in this order.

    """
    return allocate(total - sum(running.values()), running=running, waiting=waiting, at_most=max(1, total // 2))


def allocate(
    slots: int, *, running: Mapping[Name, int], waiting: Mapping[Name, int], at_most: int | None = None
) -> dict[Name, int]:
    """Allocate `slots` one at a time, each to the name that holds the fewest; ties go to the first in `waiting`.

    A name that holds `at_most` slots gets no more while another name waits.
    """
    held = dict(running)
    allocated: dict[Name, int] = {}
    left = {name: count for name, count in waiting.items() if count > 0}
    for _ in range(slots):
        allowed = [name for name in left if len(left) == 1 or at_most is None or held.get(name, 0) < at_most]
        if not allowed:
            break
        name = min(allowed, key=lambda candidate: held.get(candidate, 0))
        held[name] = held.get(name, 0) + 1
        allocated[name] = allocated.get(name, 0) + 1
        left[name] -= 1
        if left[name] == 0:
            del left[name]
    return allocated
