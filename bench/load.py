"""The load: a process of its own that sends prepared requests over kept connections, as fast or as often as asked.

It reads one `Plan` per line from its standard input and writes one `Outcome` per line for each, both JSON, so one
process serves all runs. The load has to be much cheaper than the server that it measures: requests are bytes before the
clock starts, httptools parses the answers, and only their status and time are kept.

A run ends after a number of seconds or of requests, and in any case at a deadline.
"""

import asyncio
import itertools
import json
import math
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

import httptools
import uvloop

MARK = b"########"
"""Replaced by a new number in every request, so that all bodies differ."""

_DEADLINE_S = 30.0
"""Seconds that a run may take beyond its planned duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.

    Attributes:
        port: The server's port on loopback.
        requests: Whole HTTP requests. Connection n of c begins at the n-th and takes every c-th of them,
            so connections do not share one as long as there are enough.
        connections: How many connections are kept open, with one request at a time on each.
        warm_s: Seconds at the beginning that are not counted.
        measure_s: Seconds after that, which are counted.
        limit: The number of requests after which a connection ends.
        per_second: How many requests a second begin on all connections together; None for as many as possible.

    """

    port: int
    requests: Sequence[str]
    connections: int = 1
    warm_s: float = 0.0
    measure_s: float = _DEADLINE_S
    limit: int | None = None
    per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run.

    Attributes:
        sent: Requests, including the warm-up.
        count: Answers within the counted seconds.
        per_second: Answers per counted second.
        p50_ms, p95_ms, p99_ms: Latencies, from the time at which the request should have begun.
        refused: Answers with a status other than 200 and 201, including the warm-up.
        body_bytes: The mean size of a body.
        busy: The share of a core that the load itself used.

    """

    sent: int
    count: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    refused: int
    body_bytes: float
    busy: float


class Run:
    """The state that the connections of a run share: the clock, the numbers, the measurements."""

    def __init__(self, plan: Plan) -> None:
        self.began_at = time.perf_counter()
        self.counts_from = self.began_at + plan.warm_s
        self.ends_at = self.counts_from + plan.measure_s
        self.every_s = plan.connections / plan.per_second if plan.per_second else 0.0
        self.limit = sys.maxsize if plan.limit is None else plan.limit
        self.numbers = itertools.count(1)
        self.latencies_s = array("d")
        self.last_at = self.counts_from
        self.refused = 0
        self.body_bytes = 0

    def answered(self, begun_at: float, now: float, status: int) -> None:
        """Record an answer."""
        self.refused += status not in (200, 201)
        if self.counts_from <= now <= self.ends_at:
            self.latencies_s.append(now - begun_at)
            self.last_at = now

    def outcome(self, busy_s: float) -> Outcome:
        """Return the result, after the last connection has ended."""
        ordered = sorted(self.latencies_s)
        took_s = max(self.last_at - self.counts_from, 1e-9)
        sent = next(self.numbers) - 1
        return Outcome(
            sent=sent,
            count=len(ordered),
            per_second=len(ordered) / took_s,
            p50_ms=1000 * percentile(ordered, 50),
            p95_ms=1000 * percentile(ordered, 95),
            p99_ms=1000 * percentile(ordered, 99),
            refused=self.refused,
            body_bytes=self.body_bytes / max(1, sent),
            busy=busy_s / (time.perf_counter() - self.began_at),
        )


class Connection(asyncio.Protocol):
    """A connection that sends a request, waits for its answer, and sends the next one. `ended` is set at the end."""

    def __init__(self, run: Run, requests: Iterator[bytes], first_at: float) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self._run = run
        self._requests = requests
        self._due_at = first_at
        self._left = run.limit
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast("asyncio.Transport", transport)
        self._wait_or_send()

    def data_received(self, data: bytes) -> None:
        """Pass the data to the parser."""
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Count a piece of a body."""
        self._run.body_bytes += len(body)

    def on_message_complete(self) -> None:
        """Record the answer and continue."""
        now = time.perf_counter()
        self._run.answered(self._begun_at, now, self._parser.get_status_code())
        self._left -= 1
        if now >= self._run.ends_at or self._left == 0:
            self._transport.close()
        else:
            self._wait_or_send()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection. It is an error if the server closes it during a run."""
        if exc is not None or (self._left > 0 and time.perf_counter() < self._run.ends_at):
            self.ended.set_exception(exc or ConnectionError("the server closed a connection"))
        else:
            self.ended.set_result(None)

    def _wait_or_send(self) -> None:
        """Send the next request when it is due. The latency of a late request counts from the time it was due."""
        if not self._run.every_s:
            self._send(time.perf_counter())
        elif (wait_s := self._due_at - time.perf_counter()) > 0:
            asyncio.get_running_loop().call_later(wait_s, self._send)
        else:
            self._send(self._due_at)

    def _send(self, begun_at: float | None = None) -> None:
        self._begun_at = time.perf_counter() if begun_at is None else begun_at
        self._due_at += self._run.every_s
        number = b"%08d" % next(self._run.numbers)
        self._transport.write(next(self._requests).replace(MARK, number))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest of `ordered` (ascending) that `percent` of them do not exceed; nan if it is empty."""
    if not ordered:
        return float("nan")
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


async def carry_out(plan: Plan) -> Outcome:
    """Carry out a plan. Raises OSError if a connection breaks, TimeoutError past the deadline."""
    requests = [request.encode() for request in plan.requests]
    busy_s = time.process_time()
    run = Run(plan)
    loop = asyncio.get_running_loop()
    connections = []
    async with asyncio.timeout(plan.warm_s + plan.measure_s + _DEADLINE_S):
        for nth in range(plan.connections):
            own = itertools.cycle(requests[nth % len(requests) :: plan.connections])
            make = partial(Connection, run, own, run.began_at + nth * run.every_s / plan.connections)
            _, connection = await loop.create_connection(make, "127.0.0.1", plan.port)
            connections.append(connection.ended)
        await asyncio.gather(*connections)
    return run.outcome(time.process_time() - busy_s)


def main() -> None:
    """Carry out plans until the standard input ends."""
    for line in sys.stdin:
        outcome = uvloop.run(carry_out(Plan(**json.loads(line))))
        sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
