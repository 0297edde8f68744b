"""The invariants of a running service, checked while its clients pause."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import asyncpg

from tests.soak.ledger import Violation, check_book, check_context
from tests.soak.stack import Stack
from tests.soak.talker import Talk, Talker

_AWAKE = "failed_at IS NULL AND run_after < 'infinity'"
_DUE_NOW = f"UPDATE work SET run_after = clock_timestamp() WHERE {_AWAKE} AND run_after > clock_timestamp()"


async def check_talks(talkers: Sequence[Talker], *, calm: bool, former: bool = False) -> None:
    """Check the chats of clients that pause. Raises Violation.

    Args:
        talkers: The clients.
        calm: Whether all background work is done.
        former: Whether chats that are left alone are checked, too.

    """
    for talker in talkers:
        for talk in (*talker.talks, *(talker.former if former else ())):
            try:
                await _check_talk(talker, talk, calm=calm)
            except Violation as violation:
                raise Violation(f"chat {talk.id} ({talk.preset}): {violation}") from violation


async def _check_talk(talker: Talker, talk: Talk, *, calm: bool) -> None:
    ledger = talk.ledger
    ledger.settle(await talker.list_messages(talk))
    check_context(ledger.now, await talker.read(talk, "/context", max_tokens=6_000), 6_000)
    talker.count["contexts read"] += 1
    memos = (await talker.read(talk, "/memos", limit=500))["items"]
    if talk.every is not None:
        check_book(ledger, memos, every=talk.every, calm=calm)
    if ledger.lines:
        line_id = talker.rng.choice(sorted(ledger.lines))
        if not ledger.lines[line_id].fits(await talker.list_messages(talk, line_id)):
            raise Violation(f"the former line {line_id} has changed")
    if ledger.checkpoints:
        name = talker.rng.choice(sorted(ledger.checkpoints))
        frozen = (await talker.read(talk, f"/checkpoints/{name}"))["line"]
        if not ledger.checkpoints[name].fits(await talker.list_messages(talk, frozen)):
            raise Violation(f"the checkpoint {name} has changed")


async def calm_down(stack: Stack, within_s: float) -> int:
    """Let time pass for work that waits for its next attempt; return how much is not done after `within_s`."""
    connection = await stack.connect()
    left = 1
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while left := await _look(stack, connection):
                    await asyncio.sleep(0.3)
    finally:
        await connection.close()
    return left


async def _look(stack: Stack, connection: "asyncpg.Connection[asyncpg.Record]") -> int:
    """Make waiting work due, have failed work retried by the API, and return how much there is."""
    await connection.execute(_DUE_NOW)
    if await connection.fetchval(
        "SELECT EXISTS (SELECT FROM work WHERE failed_at IS NOT NULL AND run_after < 'infinity')"
    ):
        await stack.http.post(f"http://127.0.0.1:{stack.ports[0]}/v1/work/retry", json={})
    left: int = await connection.fetchval("SELECT count(*) FROM work WHERE run_after < 'infinity'")
    return left
