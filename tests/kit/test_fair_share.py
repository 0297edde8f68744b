from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from app.kit.fair_share import allocate, allocate_to_owners, allocate_to_tenants

TENANTS = ["ann", "bob", "eve"]

_counts = st.dictionaries(st.sampled_from(TENANTS), st.integers(0, 6))


def _after(running: Mapping[str, int], given_to: Mapping[str, int]) -> dict[str, int]:
    return {tenant: running.get(tenant, 0) + given_to.get(tenant, 0) for tenant in TENANTS}


def _ways(total: int, running: Mapping[str, int], waiting: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every way to allocate free slots in which no tenant gets beyond half while another one still waits."""
    free = max(0, total - sum(running.values()))
    for counts in product(*(range(waiting.get(tenant, 0) + 1) for tenant in TENANTS)):
        given_to = dict(zip(TENANTS, counts, strict=True))
        held = _after(running, given_to)
        still_waiting = {tenant for tenant in TENANTS if waiting.get(tenant, 0) > given_to[tenant]}
        greedy = {tenant for tenant in TENANTS if given_to[tenant] and held[tenant] > max(1, total // 2)}
        if sum(counts) <= free and not any(still_waiting - {tenant} for tenant in greedy):
            yield given_to


@given(st.integers(0, 9), _counts, _counts)
def test_tenants_get_all_slots_they_may_and_the_fewest_first(
    total: int, running: dict[str, int], waiting: dict[str, int]
) -> None:
    allocated = allocate_to_tenants(total=total, running=running, waiting=waiting)
    ways = list(_ways(total, running, waiting))
    assert {tenant: allocated.get(tenant, 0) for tenant in TENANTS} in ways
    assert 0 not in allocated.values()

    def merit(way: Mapping[str, int]) -> tuple[int, list[int]]:
        return sum(way.values()), sorted(_after(running, way).values())

    assert merit(allocated) == max(map(merit, ways))


@given(st.integers(0, 9), _counts, _counts)
def test_allocating_leaves_its_arguments_unchanged(
    total: int, running: dict[str, int], waiting: dict[str, int]
) -> None:
    before = (dict(running), dict(waiting))
    allocate_to_tenants(total=total, running=running, waiting=waiting)
    assert (running, waiting) == before


def test_a_tenant_alone_gets_everything() -> None:
    assert allocate_to_tenants(total=4, running={}, waiting={"ann": 9}) == {"ann": 4}
    assert allocate_to_tenants(total=4, running={"bob": 1}, waiting={"ann": 9, "bob": 0}) == {"ann": 3}


def test_a_flood_leaves_half_of_the_slots_to_others() -> None:
    assert allocate_to_tenants(total=4, running={}, waiting={"ann": 1_000, "bob": 1_000}) == {"ann": 2, "bob": 2}
    assert allocate_to_tenants(total=4, running={}, waiting={"ann": 1_000, "bob": 1}) == {"ann": 3, "bob": 1}


def test_a_flood_that_came_first_yields_as_its_calls_end() -> None:
    assert allocate_to_tenants(total=4, running={"ann": 4}, waiting={"ann": 9, "bob": 9}) == {}
    assert allocate_to_tenants(total=4, running={"ann": 3}, waiting={"ann": 9, "bob": 9}) == {"bob": 1}
    assert allocate_to_tenants(total=4, running={"ann": 2, "bob": 1}, waiting={"ann": 9, "bob": 9}) == {"bob": 1}


def test_tenants_take_turns_at_a_single_slot() -> None:
    assert allocate_to_tenants(total=1, running={}, waiting={"ann": 1, "bob": 1}) == {"ann": 1}
    assert allocate_to_tenants(total=1, running={"ann": 1}, waiting={"bob": 1}) == {}


@given(st.integers(0, 9), _counts, _counts)
def test_slots_are_spread_evenly_until_none_is_left(
    slots: int, running: dict[str, int], waiting: dict[str, int]
) -> None:
    allocated = allocate(slots, running=running, waiting=waiting)
    assert sum(allocated.values()) == min(slots, sum(waiting.values()))
    held = _after(running, allocated)
    for name, count in waiting.items():
        if count > allocated.get(
            name, 0
        ):  # a name that still waits holds no less than any other got, but for the last round
            assert all(held[other] <= held[name] + 1 for other in allocated)


def test_among_equal_tenants_the_longest_waiting_is_first() -> None:
    assert allocate(1, running={}, waiting={"bob": 1, "ann": 1}) == {"bob": 1}
    assert allocate(3, running={"bob": 1}, waiting={"bob": 9, "ann": 9}) == {"ann": 2, "bob": 1}


def test_owners_of_a_tenant_share_what_the_tenant_gets() -> None:
    flood, line, user = "flood", "line", "user"
    waiting = {"ann": {flood: 1_000, line: 1, user: 2}, "bob": {"tenant": 1_000}}
    allocated = allocate_to_owners(total=8, running={}, waiting=waiting)
    assert allocated == {flood: 2, line: 1, user: 1, "tenant": 4}


def test_an_owner_that_holds_slots_waits_for_the_others() -> None:
    waiting = {"ann": {"line": 9, "user": 9}}
    assert allocate_to_owners(total=4, running={"ann": {"line": 2}}, waiting=waiting) == {"user": 2}
    assert allocate_to_owners(total=4, running={"bob": {"tenant": 3}}, waiting=waiting) == {"line": 1}


@given(st.integers(0, 9), st.dictionaries(st.sampled_from(TENANTS), _counts))
def test_owners_together_get_what_their_tenants_get(total: int, waiting: dict[str, dict[str, int]]) -> None:
    by_owner = {tenant: {(tenant, name): n for name, n in names.items()} for tenant, names in waiting.items()}
    allocated = allocate_to_owners(total=total, running={}, waiting=by_owner)
    of_tenants = allocate_to_tenants(
        total=total, running={}, waiting={tenant: sum(names.values()) for tenant, names in waiting.items()}
    )
    found: dict[str, int] = {}
    for (tenant, _), count in allocated.items():
        found[tenant] = found.get(tenant, 0) + count
    assert found == of_tenants
