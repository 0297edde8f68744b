"""Metrics in Prometheus's text format.

The numbers come from PostgreSQL, not from counters in this process. Every API process therefore returns the same
values, and a restart does not reset them. Only the `process_…` and `memobook_process_…` metrics, and the version in
`memobook_build_info`, describe the process that responds.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import asyncpg
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, PROCESS_COLLECTOR, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.kit.gate.connection_gate import GateCounts
from app.kit.limits import TokenLimits

MEDIA_TYPE: Final[str] = CONTENT_TYPE_PLAIN_0_0_4

STATUSES = ("due", "running", "failed", "held")


class _Read(Collector):
    """A collector of metrics that have already been read."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._metrics


def write_metrics(
    *,
    usage: Sequence[asyncpg.Record],
    work: Sequence[asyncpg.Record],
    layers: Sequence[str],
    limits: TokenLimits,
    workers: int,
    lateness_s: float,
    version: str,
    gate: GateCounts,
    waiting: int,
    rate_limited: int,
) -> bytes:
    """Return the metrics as text.

    Args:
        usage: Rows of `list_usage_ever`, with the tokens of the current month.
        work: Rows of `count_work`.
        layers: Layers to report even if they have no work, because a time series that comes and goes looks like a
            fault.
        limits: The token limits; due work of a tenant that has reached its limit is reported as held.
        workers: The number of running workers.
        lateness_s: For how many seconds the oldest ripe work (`kit/work_queue.py`) has waited for a worker. The work
            of tenants that have reached their token limits does not count.
        version: The version of the service.
        gate: This process's counts of requests that waited for a chat or a connection, and of refused requests.
        waiting: How many requests of this process wait for a chat or a connection now.
        rate_limited: How many requests this process refused because of a rate limit.

    """
    month_tokens: Counter[str] = Counter()
    for row in usage:
        month_tokens[row["tenant"]] += row["month_tokens"]
    held = {tenant for tenant, tokens in month_tokens.items() if limits.is_reached(tenant, tokens)}
    build = GaugeMetricFamily("memobook_build_info", "Always 1; the label is the version.", labels=["version"])
    build.add_metric([version], 1)
    registry = CollectorRegistry()
    registry.register(PROCESS_COLLECTOR)
    running = GaugeMetricFamily("memobook_workers", "Workers that have reported within 30 seconds.", value=workers)
    late = GaugeMetricFamily(
        "memobook_work_lateness_seconds", "How long the oldest ripe work has waited for a worker.", value=lateness_s
    )
    registry.register(_Read([build, running, late, *_model_metrics(usage), _work_metric(work, layers, held)]))
    registry.register(_Read(_gate_metrics(gate, waiting, rate_limited)))
    return generate_latest(registry)


def _model_metrics(usage: Sequence[asyncpg.Record]) -> list[Metric]:
    labels = ["tenant", "layer"]
    calls = CounterMetricFamily(
        "memobook_model_calls",
        "Calls of the model, including failed ones; immediate retries do not count.",
        labels=labels,
    )
    failures = CounterMetricFamily(
        "memobook_model_failures", "Calls of the model that returned no answer.", labels=labels
    )
    tokens = CounterMetricFamily(
        "memobook_model_tokens", "Tokens of prompts and answers.", labels=[*labels, "direction"]
    )
    wait = CounterMetricFamily(
        "memobook_model_wait_seconds",
        "Duration of calls of the model, including waits for a free slot.",
        labels=labels,
    )
    for row in usage:
        label_values = [row["tenant"], row["layer"]]
        calls.add_metric(label_values, row["calls"])
        failures.add_metric(label_values, row["failures"])
        tokens.add_metric([*label_values, "prompt"], row["prompt_tokens"])
        tokens.add_metric([*label_values, "completion"], row["completion_tokens"])
        wait.add_metric(label_values, row["wait_ms"] / 1_000)
    return [calls, failures, tokens, wait]


def _gate_metrics(gate: GateCounts, waiting: int, rate_limited: int) -> list[Metric]:
    refusals = CounterMetricFamily(
        "memobook_process_refusals",
        "Requests of this process that were refused before they used a connection, by reason.",
        labels=["reason"],
    )
    for reason, count in (*gate.refusals.items(), ("rate_limit", rate_limited)):
        refusals.add_metric([reason], count)
    return [
        GaugeMetricFamily(
            "memobook_process_waiting", "Requests of this process that wait for a chat or a connection.", waiting
        ),
        CounterMetricFamily(
            "memobook_process_waits", "Requests of this process that waited for a chat or a connection.", gate.waits
        ),
        CounterMetricFamily(
            "memobook_process_wait_seconds",
            "Time that requests of this process have waited for a chat or a connection.",
            gate.wait_s,
        ),
        refusals,
    ]


def _work_metric(work: Sequence[asyncpg.Record], layers: Sequence[str], held: set[str]) -> Metric:
    """Return the number of items by status and layer. Each item counts once: a held item does not count as due."""
    rows = Counter({(status, layer): 0 for layer in layers for status in STATUSES})
    for row in work:
        status = "held" if row["status"] == "due" and row["tenant"] in held else row["status"]
        rows[status, row["layer"]] += row["rows"]
    gauge = GaugeMetricFamily(
        "memobook_work",
        "Background work of all tenants; held work is due, but its tenant has reached its monthly token limit.",
        labels=["status", "layer"],
    )
    for label_values, count in sorted(rows.items()):
        gauge.add_metric(label_values, count)
    return gauge
