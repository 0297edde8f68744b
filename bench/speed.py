"""The table: contexts and appends of the service beside their floor, in alternating runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import psutil

from app.kit.db import Connection
from app.local.directory import DataDirectory
from bench.load import Outcome, Plan
from bench.processes import Load, process_of, say
from bench.requests import What, write_append, write_requests
from bench.statements import Statements, read_calls, sent_between

CONNECTIONS = (1, 32)
_COUNTED = 48
"""Requests over which statements are counted: a multiple of the appends per batch and per cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The duration and the number of the runs."""

    runs: int
    warm_s: float
    measure_s: float


@dataclass(frozen=True, slots=True)
class Run:
    """The result of the load, the server's processor time for one request, and its memory afterwards."""

    outcome: Outcome
    cpu_us: float
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: runs of the service and of the floor; the n-th runs of both belong together."""

    what: What
    size: int
    connections: int
    service: list[Run] = field(default_factory=list)
    floor: list[Run] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The median of the service's speed, divided by the floor's."""
        return ratio_of(self.service, self.floor)


def ratio_of(runs: Sequence[Run], others: Sequence[Run]) -> float:
    """Return the median of the speed of `runs`, divided by that of `others`, which ran beside them."""
    pairs = zip(runs, others, strict=True)
    return median(run.outcome.per_second / other.outcome.per_second for run, other in pairs)


class Bench:
    """Measures the service and the floor.

    Args:
        load: The load.
        directory: The data directory of the stack.
        service_port: The port of the service.
        floor_port: The port of the floor.
        key: A key of the service.

    """

    def __init__(self, load: Load, directory: DataDirectory, *, service_port: int, floor_port: int, key: str) -> None:
        self._load = load
        self._directory = directory
        self._service_port = service_port
        self._floor_port = floor_port
        self._key = key

    async def compare(self, what: What, connections: int, sizes: Sequence[int], effort: Effort) -> list[Row]:
        """Run service and floor in turn, and all sizes in each round, so that other load affects all equally."""
        rows = [Row(what, size, connections) for size in sizes]
        for _ in range(effort.runs):
            for row in rows:
                row.service.append(await self._run(row, effort, floor=False))
                row.floor.append(await self._run(row, effort, floor=True))
        for row in rows:
            speed = median(run.outcome.per_second for run in row.service)
            say(f"{what} of {row.size}, {connections} connections: {speed:.0f}/s, {row.ratio:.2f} of the floor")
        return rows

    async def _run(self, row: Row, effort: Effort, *, floor: bool) -> Run:
        plan = Plan(
            port=self._floor_port if floor else self._service_port,
            requests=write_requests(row.what, row.size, self._key, floor=floor),
            connections=row.connections,
            warm_s=effort.warm_s,
            measure_s=effort.measure_s,
        )
        server = process_of(self._directory, "floor" if floor else "api")
        before_s = _cpu_s(server)
        outcome = await self._load.run(plan)
        return Run(outcome, 1e6 * (_cpu_s(server) - before_s) / outcome.sent, server.memory_info().rss)

    async def count(self, connection: Connection, what: What, size: int) -> Statements:
        """Return the statements of one request; the worker is idle."""
        requests = write_requests(what, size, self._key)[:1]
        await self._sent(connection, requests, 1)  # the key is looked up now and then, which must not count
        return (await self._sent(connection, requests, _COUNTED)).per(_COUNTED)

    async def count_appends(self, connection: Connection, size: int) -> list[Statements]:
        """Return the statements of each of a series of appends to one chat."""
        requests = [write_append(size, 1, self._key)]
        await self._sent(connection, requests, _COUNTED)  # statements that a connection runs only once must not count
        return [await self._sent(connection, requests, 1) for _ in range(_COUNTED)]

    async def _sent(self, connection: Connection, requests: Sequence[str], limit: int) -> Statements:
        worker = process_of(self._directory, "worker")
        worker.suspend()
        try:
            before = await read_calls(connection)
            await self._load.run(Plan(port=self._service_port, requests=requests, limit=limit))
            return sent_between(before, await read_calls(connection))
        finally:
            worker.resume()


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
