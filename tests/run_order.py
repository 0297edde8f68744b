"""The order of the test files, and what `make check` leaves out on a slow machine.

On two usual cores `make check` runs all tests. On a machine that is many times slower it would need hours. So it runs
first what needs no server, then what protects the conversations, and then as many of the other files as it can begin in
its time, in a new order for each run. At its end it lists what was left out. `make test` and `make check-long`
have no limit (docs/adr/0056-on-a-slow-machine-check-ends-in-time.md).
"""

import os
import random
from collections.abc import Mapping, Sequence

UNTIL_S = float(os.environ.get("TESTS_UNTIL", "inf"))
"""The time, in seconds since 1970, after which no test begins that may be left out."""

SEED = os.environ.get("TESTS_ORDER", "" if float("inf") == UNTIL_S else f"{UNTIL_S:.0f}")
"""What the order is drawn by. If it is empty, the files stay in the order of their names."""

LEFT_OUT = "the time of `make check` is over; `make test` and `make check-long` run this test"

ALWAYS = (
    "tests/api/test_tenants.py",
    "tests/chats/test_changing_races.py",
    "tests/chats/test_erased_words.py",
    "tests/chats/test_erasing_api.py",
    "tests/chats/test_locks.py",
    "tests/chats/test_races.py",
    "tests/chats/test_retry_races.py",
    "tests/consolidation/test_kills.py",
    "tests/keys/test_token_routes.py",
    "tests/keys/test_user_scope_api.py",
    "tests/kit/test_db.py",
    "tests/kit/test_log.py",
    "tests/kit/test_work_queue.py",
    "tests/messages/test_messages_api.py",
    "tests/schema/test_catalog.py",
    "tests/schema/test_migrations.py",
    "tests/upgrade/test_upgrade.py",
    "tests/work/test_kills.py",
)
"""Files that always run, although their tests need servers: no message is lost, doubled, or shown to others.

Files whose verdicts depend on the service's own times, such as a lease of 15 s, are not among them: a machine that
does no work for as long fails them without a fault (tests/work/test_dispatcher.py).
"""

PROCESSES = (
    "tests/commands/",
    "tests/demo/",
    "tests/deploy/test_deploy.py",
    "tests/house/test_linear_parsing.py",
    "tests/local/",
    "tests/oracle/",
    "tests/soak/",
)
"""Files and folders that may be left out as a whole, although not all of their tests ask for the servers: they start
their own processes, or take long."""


def may_be_left_out(file: str, *, needs_servers: bool) -> bool:
    """Whether a file, with its path relative to the project, or a test of it, waits for the time that is left."""
    return file not in ALWAYS and (needs_servers or file.startswith(PROCESSES))


def is_left_out(file: str, *, needs_servers: bool, now_s: float, until_s: float = UNTIL_S) -> bool:
    """Whether a test that would begin now is left out. Times are in seconds since 1970."""
    return now_s > until_s and may_be_left_out(file, needs_servers=needs_servers)


def order_files(files: Mapping[str, bool], seed: str) -> Sequence[str]:
    """Put the files in their order.

    Args:
        files: Each file, in the order of its name, and whether one of its tests needs the servers.
        seed: As `SEED`.

    """
    left = [file for file, needs_servers in files.items() if may_be_left_out(file, needs_servers=needs_servers)]
    always = [file for file in files if file not in left]
    cheap = [file for file in always if file not in ALWAYS]
    protecting = [file for file in always if file in ALWAYS]
    if seed:
        random.Random(seed).shuffle(left)
    return [*cheap, *protecting, *left]
