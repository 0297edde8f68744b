from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from app.kit.slots import deal, share_slots

TENANTS = ["ann", "bob", "eve"]

_counts = st.dictionaries(st.sampled_from(TENANTS), st.integers(0, 6))


def _after(running: Mapping[str, int], given_to: Mapping[str, int]) -> dict[str, int]:
    return {tenant: running.get(tenant, 0) + given_to.get(tenant, 0) for tenant in TENANTS}


def _ways(total: int, running: Mapping[str, int], waiting: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every way to deal free slots in which nobody gets beyond half while somebody else still waits."""
    free = max(0, total - sum(running.values()))
    for counts in product(*(range(waiting.get(tenant, 0) + 1) for tenant in TENANTS)):
        given_to = dict(zip(TENANTS, counts, strict=True))
        held = _after(running, given_to)
        still_waiting = {tenant for tenant in TENANTS if waiting.get(tenant, 0) > given_to[tenant]}
        greedy = {tenant for tenant in TENANTS if given_to[tenant] and held[tenant] > max(1, total // 2)}
        if sum(counts) <= free and not any(still_waiting - {tenant} for tenant in greedy):
            yield given_to


@given(st.integers(0, 9), _counts, _counts)
def test_as_many_slots_as_may_be_are_dealt_and_those_who_hold_fewest_come_first(
    total: int, running: dict[str, int], waiting: dict[str, int]
) -> None:
    dealt = share_slots(total=total, running=running, waiting=waiting)
    ways = list(_ways(total, running, waiting))
    assert {tenant: dealt.get(tenant, 0) for tenant in TENANTS} in ways
    assert 0 not in dealt.values()

    def merit(way: Mapping[str, int]) -> tuple[int, list[int]]:
        return sum(way.values()), sorted(_after(running, way).values())

    assert merit(dealt) == max(map(merit, ways))


@given(st.integers(0, 9), _counts, _counts)
def test_sharing_changes_nothing_that_it_was_given(
    total: int, running: dict[str, int], waiting: dict[str, int]
) -> None:
    before = (dict(running), dict(waiting))
    share_slots(total=total, running=running, waiting=waiting)
    assert (running, waiting) == before


def test_who_is_alone_gets_everything() -> None:
    assert share_slots(total=4, running={}, waiting={"ann": 9}) == {"ann": 4}
    assert share_slots(total=4, running={"bob": 1}, waiting={"ann": 9, "bob": 0}) == {"ann": 3}


def test_a_flood_leaves_half_to_who_comes_with_it() -> None:
    assert share_slots(total=4, running={}, waiting={"ann": 1_000, "bob": 1_000}) == {"ann": 2, "bob": 2}
    assert share_slots(total=4, running={}, waiting={"ann": 1_000, "bob": 1}) == {"ann": 3, "bob": 1}


def test_a_flood_that_came_first_gives_way_as_its_calls_end() -> None:
    assert share_slots(total=4, running={"ann": 4}, waiting={"ann": 9, "bob": 9}) == {}
    assert share_slots(total=4, running={"ann": 3}, waiting={"ann": 9, "bob": 9}) == {"bob": 1}
    assert share_slots(total=4, running={"ann": 2, "bob": 1}, waiting={"ann": 9, "bob": 9}) == {"bob": 1}


def test_a_single_slot_goes_round() -> None:
    assert share_slots(total=1, running={}, waiting={"ann": 1, "bob": 1}) == {"ann": 1}
    assert share_slots(total=1, running={"ann": 1}, waiting={"bob": 1}) == {}


@given(st.integers(0, 9), _counts, _counts)
def test_slots_are_dealt_until_there_are_none_or_nobody_waits_and_nobody_gets_far_ahead(
    slots: int, running: dict[str, int], waiting: dict[str, int]
) -> None:
    dealt = deal(slots, running=running, waiting=waiting)
    assert sum(dealt.values()) == min(slots, sum(waiting.values()))
    held = _after(running, dealt)
    for name, count in waiting.items():
        if count > dealt.get(name, 0):  # who still waits holds no less than anybody was dealt, but for the last round
            assert all(held[other] <= held[name] + 1 for other in dealt)


def test_among_equals_the_first_who_waits_comes_first() -> None:
    assert deal(1, running={}, waiting={"bob": 1, "ann": 1}) == {"bob": 1}
    assert deal(3, running={"bob": 1}, waiting={"bob": 9, "ann": 9}) == {"ann": 2, "bob": 1}
