"""The table of faults: what is injected into the running service, and how it is undone.

Each fault lasts while its block is entered. Afterwards the service has to recover without help; a process that the
fault ended is started again, as a supervisor does.
"""

import asyncio
import random
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import asyncpg
import psutil

from tests.oracle.answers import DECLINES, echo, misbehave
from tests.scripted_model import HANG_UP, Step, refuses, says, sends
from tests.slowness import SLOWNESS
from tests.soak.ledger import Violation
from tests.soak.stack import Program, Stack

Inject = Callable[[Stack, random.Random], AbstractAsyncContextManager[None]]
Says = Literal["down", "redis down"]
"""What `/readyz` has to say during a fault."""

READY_S = 20.0 * SLOWNESS
REFUSED_S = 60.0 * SLOWNESS
"""For 30 seconds after a refused write the service says that it cannot write."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault.

    Attributes:
        name: Its name.
        what: What it does.
        undone: How it is undone.
        inject: Does it while the block is entered.
        says: What `/readyz` has to say meanwhile; None if it need not notice.
        ready_s: How long the service may take to recover.

    """

    name: str
    what: str
    undone: str
    inject: Inject
    says: Says | None = None
    ready_s: float = READY_S


def on_program(kind: Literal["apis", "workers"], number: signal.Signals, *, every: bool = False) -> Inject:
    """End processes by a signal. SIGTERM has to end them with exit code 0."""

    @asynccontextmanager
    async def inject(stack: Stack, rng: random.Random) -> AsyncGenerator[None]:
        programs: list[Program] = getattr(stack, kind)
        chosen = programs if every else [rng.choice(programs)]
        codes = await asyncio.gather(*(program.end(number) for program in chosen))
        if number == signal.SIGTERM and set(codes) - {0, -signal.SIGTERM}:
            raise Violation(f"SIGTERM ended {kind} with {codes}")
        yield
        for program in chosen:
            await program.start()

    return inject


def stopped(kind: Literal["api", "worker", "postgres", "valkey"]) -> Inject:
    """Freeze a process with its children: it keeps its connections, and answers nothing."""

    @asynccontextmanager
    async def inject(stack: Stack, rng: random.Random) -> AsyncGenerator[None]:
        program = rng.choice(getattr(stack, f"{kind}s")) if kind in ("api", "worker") else getattr(stack, kind)
        program.signal_all(signal.SIGSTOP)
        try:
            yield
        finally:
            program.signal_all(signal.SIGCONT)

    return inject


def postgres_ended(number: signal.Signals) -> Inject:
    """End PostgreSQL by a signal to its first process."""

    @asynccontextmanager
    async def inject(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
        await stack.postgres.end(number)
        try:
            yield
        finally:
            await stack.start_postgres()

    return inject


@asynccontextmanager
async def backend_killed(stack: Stack, rng: random.Random) -> AsyncGenerator[None]:
    """Kill one backend with SIGKILL; PostgreSQL then ends all others, and recovers."""
    async with connected(stack) as connection:
        pids = [row["pid"] for row in await connection.fetch(_BACKENDS)]
    if pids:
        psutil.Process(rng.choice(pids)).kill()
    yield


_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'memobook'"


def sent_to_backends(function: str, *, every: bool) -> Inject:
    """Call a function of PostgreSQL with the process id of one backend, or of every one, again and again."""

    @asynccontextmanager
    async def inject(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
        limit = "ALL" if every else "1"
        statement = f"SELECT {function}(pid) FROM ({_BACKENDS} ORDER BY random() LIMIT {limit}) AS chosen"

        async def repeat() -> None:
            async with connected(stack) as connection:
                while True:
                    await connection.execute(statement)
                    await asyncio.sleep(0.2)

        async with running(repeat()):
            yield

    return inject


@asynccontextmanager
async def link_frozen(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
    """Hold back every byte between the service and PostgreSQL."""
    stack.link.freeze()
    try:
        yield
    finally:
        stack.link.thaw()


@asynccontextmanager
async def link_cut(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
    """Cut every connection between the service and PostgreSQL, again and again."""

    async def repeat() -> None:
        while True:
            stack.link.cut_all()
            await asyncio.sleep(0.3)

    async with running(repeat()):
        yield


@asynccontextmanager
async def read_only(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
    """Make every new transaction read-only, as a failover to a replica does."""
    async with connected(stack) as connection:
        await connection.execute("ALTER DATABASE memobook SET default_transaction_read_only = on")
        await connection.execute(f"SELECT pg_terminate_backend(pid) FROM ({_BACKENDS}) AS others")
    try:
        yield
    finally:
        async with connected(stack, default_transaction_read_only="off") as connection:
            await connection.execute("ALTER DATABASE memobook RESET default_transaction_read_only")
            await connection.execute(f"SELECT pg_terminate_backend(pid) FROM ({_BACKENDS}) AS others")


def writes_fail(sqlstate: str) -> Inject:
    """Let every write of a message fail as PostgreSQL fails with this SQLSTATE."""

    @asynccontextmanager
    async def inject(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
        async with connected(stack) as connection:
            await connection.execute(
                f"""
                CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$;
                CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON messages FOR EACH ROW EXECUTE FUNCTION fail();
                """
            )
        try:
            yield
        finally:
            async with connected(stack) as connection:
                await connection.execute("DROP TRIGGER fail ON messages")

    return inject


def locked(statement: str) -> Inject:
    """Hold what a statement locks."""

    @asynccontextmanager
    async def inject(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
        async with connected(stack) as connection, connection.transaction():
            await connection.execute(statement)
            yield

    return inject


@asynccontextmanager
async def connections_used_up(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
    """Close the service's connections, and take all that PostgreSQL admits."""
    async with AsyncExitStack() as exits:
        with suppress(asyncpg.TooManyConnectionsError, asyncpg.InsufficientResourcesError):
            first = await exits.enter_async_context(connected(stack))
            while True:
                await first.execute(f"SELECT pg_terminate_backend(pid) FROM ({_BACKENDS}) AS others")
                for _ in range(10):
                    await exits.enter_async_context(connected(stack))
        yield


@asynccontextmanager
async def leases_expired(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
    """End the leases of running work, so that two workers do the same."""

    async def repeat() -> None:
        async with connected(stack) as connection:
            while True:
                await connection.execute("UPDATE work SET leased_until = clock_timestamp() WHERE lease IS NOT NULL")
                await asyncio.sleep(0.1)

    async with running(repeat()):
        yield


def inject_commands(*commands: str, undo: str | None = None) -> Inject:
    """Send commands to Valkey."""

    @asynccontextmanager
    async def inject(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
        for command in commands:
            await send_to_valkey(stack, command)
        try:
            yield
        finally:
            if undo:
                await send_to_valkey(stack, undo)

    return inject


@asynccontextmanager
async def valkey_killed(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
    """Kill Valkey."""
    await stack.valkey.end(signal.SIGKILL)
    try:
        yield
    finally:
        await stack.start_valkey()


def model_answers(step: Step) -> Inject:
    """Let the model answer every call in one way."""

    @asynccontextmanager
    async def inject(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
        stack.model.otherwise = step
        try:
            yield
        finally:
            stack.model.otherwise = echo

    return inject


@asynccontextmanager
async def model_away(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
    """Let nothing listen where the model was."""
    await stack.model.__aexit__(None, None, None)
    try:
        yield
    finally:
        await stack.model.__aenter__()


@asynccontextmanager
async def model_slow(stack: Stack, _rng: random.Random) -> AsyncGenerator[None]:
    """Hold back every answer of the model."""
    gate = stack.model.hold()
    try:
        yield
    finally:
        gate.release()


@asynccontextmanager
async def worker_killed_in_a_call(stack: Stack, rng: random.Random) -> AsyncGenerator[None]:
    """Kill a worker while the model is asked."""
    async with model_slow(stack, rng):
        for _ in range(40):
            if stack.model.active:
                break
            await asyncio.sleep(0.05)
        async with on_program("workers", signal.SIGKILL)(stack, rng):
            yield


def cut(direction: Literal["cut_requests", "cut_answers"]) -> Inject:
    """Cut every third chunk of a direction, and the connection with it."""

    @asynccontextmanager
    async def inject(stack: Stack, rng: random.Random) -> AsyncGenerator[None]:
        def cut_some(length: int) -> int | None:
            return rng.randrange(length) if rng.random() < 1 / 3 else None

        for proxy in stack.proxies:
            setattr(proxy, direction, cut_some)
        try:
            yield
        finally:
            for proxy in stack.proxies:
                setattr(proxy, direction, lambda _length: None)

    return inject


def together(*faults: Inject) -> Inject:
    """Inject several faults at once."""

    @asynccontextmanager
    async def inject(stack: Stack, rng: random.Random) -> AsyncGenerator[None]:
        async with AsyncExitStack() as exits:
            for fault in faults:
                await exits.enter_async_context(fault(stack, rng))
            yield

    return inject


_API_KILLED = on_program("apis", signal.SIGKILL)
_WORKER_KILLED = on_program("workers", signal.SIGKILL)
_POSTGRES_KILLED = postgres_ended(signal.SIGKILL)
_NO_JSON = sends(b"<html>It works!</html>")
_STARTED = "the processes are started again"
_AGAIN = "the model answers again"
_ALONE = "the service recovers by itself"

FAULTS = (
    Fault("api killed", "kill -9 of one API process", _STARTED, _API_KILLED),
    Fault("all apis killed", "kill -9 of all API processes", _STARTED, on_program("apis", signal.SIGKILL, every=True)),
    Fault("api terminated", "SIGTERM of one API process", _STARTED, on_program("apis", signal.SIGTERM)),
    Fault("api frozen", "SIGSTOP of one API process", "SIGCONT", stopped("api")),
    Fault("worker killed", "kill -9 of one worker", _STARTED, _WORKER_KILLED),
    Fault("worker killed in a call", "kill -9 while the model is asked", _STARTED, worker_killed_in_a_call),
    Fault("all workers killed", "kill -9 of all workers", _STARTED, on_program("workers", signal.SIGKILL, every=True)),
    Fault("worker terminated", "SIGTERM of one worker", _STARTED, on_program("workers", signal.SIGTERM)),
    Fault("worker frozen", "SIGSTOP of one worker", "SIGCONT", stopped("worker")),
    Fault("lease lost", "ends the leases of running work", _ALONE, leases_expired),
    Fault(
        "backend ended", "pg_terminate_backend of one", _ALONE, sent_to_backends("pg_terminate_backend", every=False)
    ),
    Fault(
        "all backends ended",
        "pg_terminate_backend of all",
        _ALONE,
        sent_to_backends("pg_terminate_backend", every=True),
    ),
    Fault(
        "statements cancelled", "pg_cancel_backend of all", _ALONE, sent_to_backends("pg_cancel_backend", every=True)
    ),
    Fault("backend killed", "kill -9 of one backend: PostgreSQL recovers", _ALONE, backend_killed),
    Fault("PostgreSQL killed", "kill -9 of its first process", "it is started again", _POSTGRES_KILLED, "down"),
    Fault("PostgreSQL crashed", "SIGQUIT", "it is started again", postgres_ended(signal.SIGQUIT), "down"),
    Fault("PostgreSQL restarted", "SIGINT", "it is started again", postgres_ended(signal.SIGINT), "down"),
    Fault("PostgreSQL frozen", "SIGSTOP of all its processes", "SIGCONT", stopped("postgres"), "down"),
    Fault("database link frozen", "a proxy passes no byte on", "it passes them on", link_frozen, "down"),
    Fault("database link cut", "a proxy cuts all connections", "it cuts no more", link_cut),
    Fault("connections used up", "takes all connections of PostgreSQL", "closes them", connections_used_up, "down"),
    Fault(
        "database read-only",
        "ALTER DATABASE … SET default_transaction_read_only",
        "RESET",
        read_only,
        "down",
        REFUSED_S,
    ),
    Fault(
        "disk full",
        "a trigger fails writes with the SQLSTATE of a full disk (53100)",
        "the trigger is dropped",
        writes_fail("53100"),
        None,
        REFUSED_S,
    ),
    Fault("out of memory", "a trigger fails writes with 53200", "it is dropped", writes_fail("53200")),
    Fault("chats locked", "locks the rows of all chats", "rolls back", locked("SELECT 1 FROM chats FOR UPDATE")),
    Fault("table locked", "LOCK TABLE messages", "rolls back", locked("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")),
    Fault("Redis killed", "kill -9 of Valkey", "it is started again", valkey_killed, "redis down"),
    Fault("Redis frozen", "SIGSTOP of Valkey", "SIGCONT", stopped("valkey"), "redis down"),
    Fault("Redis flushed", "FLUSHALL", _ALONE, inject_commands("FLUSHALL")),
    Fault(
        "Redis full",
        "refuses to write (maxmemory 1, noeviction)",
        "maxmemory 64mb",
        inject_commands(
            "CONFIG SET maxmemory-policy noeviction", "CONFIG SET maxmemory 1", undo="CONFIG SET maxmemory 64mb"
        ),
    ),
    Fault("model away", "nothing listens", "it listens again", model_away),
    Fault("model slow", "no answer in time", _AGAIN, model_slow),
    Fault("model hangs up", "closes without an answer", _AGAIN, model_answers(HANG_UP)),
    Fault("model fails", "500", _AGAIN, model_answers(refuses(500))),
    Fault("model overloaded", "429, Retry-After: 1", _AGAIN, model_answers(refuses(429, retry_after="1"))),
    Fault("model rejects the key", "401", _AGAIN, model_answers(refuses(401))),
    Fault("model unknown", "404", _AGAIN, model_answers(refuses(404))),
    Fault("model answers HTML", "200 with a page", _AGAIN, model_answers(_NO_JSON)),
    Fault("model answers half", "cut in the middle", _AGAIN, model_answers(replace(says("A highlight."), cut_at=40))),
    Fault("model drips", "a byte each 0.1 s", _AGAIN, model_answers(replace(says("A line."), byte_every_s=0.1))),
    Fault("model says nothing", "an empty text", _AGAIN, model_answers(says(""))),
    Fault("model declines", "refuses in words", _AGAIN, model_answers(DECLINES)),
    Fault("model misbehaves", "goes on with the story, repeats itself", _AGAIN, model_answers(misbehave)),
    Fault("answers cut", "cuts connections in the middle of answers", _ALONE, cut("cut_answers")),
    Fault("requests cut", "cuts connections in the middle of requests", _ALONE, cut("cut_requests")),
    Fault("api and worker killed", "kill -9 of one each", _STARTED, together(_API_KILLED, _WORKER_KILLED)),
    Fault("api and PostgreSQL killed", "kill -9 of both", _STARTED, together(_POSTGRES_KILLED, _API_KILLED)),
    Fault(
        "Redis and model away", "kill -9 of Valkey, no model", _AGAIN, together(valkey_killed, model_away), "redis down"
    ),
)
"""All faults. Disk full is simulated with its SQLSTATE, because a small file system needs root."""


@asynccontextmanager
async def connected(stack: Stack, **settings: str) -> AsyncGenerator[Any]:
    """Yield a connection of the soak's own, which may be lost meanwhile."""
    connection = await stack.connect(**settings)
    try:
        yield connection
    finally:
        with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            await connection.close(timeout=5)


@asynccontextmanager
async def running(repeating: Any) -> AsyncGenerator[None]:
    """Run a coroutine during the block. Raises what ended it."""
    task = asyncio.create_task(repeating)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def send_to_valkey(stack: Stack, command: str) -> None:
    """Send one command to Valkey. Raises Violation if it is refused."""
    reader, writer = await asyncio.open_unix_connection(stack.redis_url.removeprefix("unix://"))
    try:
        writer.write(f"{command}\r\n".encode())
        answer = await reader.readline()
        if not answer.startswith(b"+OK"):
            raise Violation(f"{command}: {answer!r}")
    finally:
        writer.close()


def says_during(fault: Fault) -> Callable[[int, Any], bool] | None:
    """What `/readyz` has to say during a fault; None if it need not notice."""
    if fault.says == "down":
        return lambda status, said: status == 503 and said["status"] == "down"
    if fault.says == "redis down":
        return lambda status, said: status == 200 and (said["status"], said["redis"]) == ("degraded", "down")
    return None
