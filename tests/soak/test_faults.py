"""The running service survives each of these faults: what `make soak` does for minutes, once for each."""

from collections.abc import AsyncIterator

import pytest

from tests.soak.checks import check_talks
from tests.soak.faults import FAULTS, Fault
from tests.soak.ledger import Violation
from tests.soak.run import Soak, soaking
from tests.soak.stack import is_unexpected, open_directory

LEFT_TO_THE_SOAK = {
    *("disk full", "database read-only", "all apis killed", "api terminated", "all workers killed", "model drips"),
    *("PostgreSQL crashed", "api and worker killed", "api and PostgreSQL killed", "worker frozen", "model hangs up"),
    *("model says nothing", "model unknown", "model misbehaves", "model answers HTML", "Redis and model away"),
}
"""The service recovers more slowly from these, or they are much like others."""

HOLD_S = 0.3
CALM_S = 1.0


@pytest.fixture(scope="module")
async def soak() -> AsyncIterator[Soak]:
    with open_directory() as path:
        async with soaking(path, seed=1, talkers=2) as running:
            yield running


CHECKED = [fault for fault in FAULTS if fault.name not in LEFT_TO_THE_SOAK]


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in CHECKED])
async def test_the_service_survives_each_fault(soak: Soak, fault: Fault) -> None:
    await soak.survive(fault, hold_s=HOLD_S, calm_s=CALM_S)
    assert soak.count["messages acknowledged"] > 0


@pytest.mark.parametrize(
    ("spoil", "mend"),
    [
        ("SET content = content || ' '", "SET content = rtrim(content)"),
        ("SET deleted_at = now()", "SET deleted_at = NULL"),
        ("SET seq = seq + 100000", "SET seq = seq - 100000"),
    ],
    ids=["text", "loss", "order"],
)
async def test_a_message_that_is_not_as_it_was_is_found(soak: Soak, spoil: str, mend: str) -> None:
    async with soak.paused():
        said = next(talk for talker in soak.talkers for talk in talker.talks).ledger.now.messages[0]
        connection = await soak.stack.connect()
        try:
            await connection.execute(f"UPDATE messages {spoil} WHERE message_id = $1 AND deleted_at IS NULL", said.id)
            with pytest.raises(Violation, match="lost, doubled, reordered or wrong"):
                await check_talks(soak.talkers, calm=False)
            await connection.execute(f"UPDATE messages {mend} WHERE message_id = $1", said.id)
        finally:
            await connection.close()
    await soak.check(full=False)


async def test_all_work_is_done_after_the_faults(soak: Soak) -> None:
    assert await soak.check(full=True) == 0


def test_the_names_of_faults_are_unique() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names)) >= 40
    assert set(names) > LEFT_TO_THE_SOAK
    assert len(CHECKED) >= 20


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"level": "warning", "message": "Redis is not reachable"}', None),
        ('{"level": "error", "message": "failed", "error": ["Unavailable: unavailable"], "traceback": []}', None),
        ('{"level": "error", "message": "failed"}', "an error"),
        ('{"level": "warning", "message": "failed", "error": ["KeyError"], "traceback": []}', "a traceback"),
        ("Traceback (most recent call last):", "something that is no record"),
    ],
)
def test_a_line_of_the_log_without_a_known_cause_counts(line: str, reason: str | None) -> None:
    assert is_unexpected(line) == reason
