"""What `make check` runs first, and what it leaves out on a slow machine."""

from pathlib import Path

import pytest

from tests.conftest import file_of, needs_servers
from tests.run_order import ALWAYS, PROCESSES, is_left_out, may_be_left_out, order_files
from tests.slowness import SLOWNESS

ROOT = Path(__file__).parents[2]
WITH_SERVERS = [f"tests/lines/test_{n}.py" for n in range(20)]
CHEAP, PROTECTING, SLOW = "tests/kit/test_tokens.py", ALWAYS[0], "tests/oracle/test_memo_oracle.py"


@pytest.mark.parametrize("path", [*ALWAYS, *PROCESSES])
def test_a_named_path_is_there(path: str) -> None:
    assert (ROOT / path).is_dir() == path.endswith("/")
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("file", "with_servers", "expected"),
    [(CHEAP, False, False), (CHEAP, True, True), (PROTECTING, True, False), (SLOW, False, True), (SLOW, True, True)],
)
def test_servers_and_processes_wait_unless_they_protect(file: str, *, with_servers: bool, expected: bool) -> None:
    assert may_be_left_out(file, needs_servers=with_servers) is expected
    assert is_left_out(file, needs_servers=with_servers, now_s=101, until_s=100) is expected
    assert not is_left_out(file, needs_servers=with_servers, now_s=99, until_s=100)
    assert not is_left_out(file, needs_servers=with_servers, now_s=101, until_s=float("inf"))


def test_the_order_is_cheap_then_protecting_then_the_rest() -> None:
    files = {"tests/a.py": True, PROTECTING: True, **dict.fromkeys(WITH_SERVERS, True), "tests/z.py": False}
    assert order_files(files, "") == ["tests/z.py", PROTECTING, "tests/a.py", *WITH_SERVERS]
    drawn = order_files(files, "1764000000")
    assert drawn[:2] == ["tests/z.py", PROTECTING]
    assert sorted(drawn[2:]) == sorted(["tests/a.py", *WITH_SERVERS])


def test_each_seed_draws_another_order_and_always_the_same() -> None:
    files = dict.fromkeys(WITH_SERVERS, True)
    orders = {seed: order_files(files, seed) for seed in ("1764000000", "1764000060", "1764000120")}
    assert len({tuple(order) for order in orders.values()}) == 3
    assert all(order_files(files, seed) == order for seed, order in orders.items())


def test_the_tests_of_a_run_are_in_that_order(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    groups = [
        (may_be_left_out(file_of(one.nodeid), needs_servers=False), file_of(one.nodeid) in ALWAYS)
        for one in items
        if not needs_servers(one) and file_of(one.nodeid).startswith(("tests/summarising/", *PROCESSES))
    ]
    assert groups == sorted(groups)
    assert not needs_servers(request.node)
    assert SLOWNESS >= 1
