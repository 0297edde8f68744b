"""What Prometheus reads, in its text format.

Nothing is counted in this process: the numbers lie in PostgreSQL, so it doesn't matter which process of the API is
scraped, and none of them falls back when one is started again. Only `process_…` is of the process that answers.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import asyncpg
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, PROCESS_COLLECTOR, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.kit.limits import TokenLimits

MEDIA_TYPE: Final[str] = CONTENT_TYPE_PLAIN_0_0_4

STATUSES = ("due", "running", "failed", "held")


class _Read(Collector):
    """Metrics that have been read already."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Themselves."""
        return self._metrics


def write_metrics(
    *,
    usage: Sequence[asyncpg.Record],
    work: Sequence[asyncpg.Record],
    layers: Sequence[str],
    limits: TokenLimits,
    version: str,
) -> bytes:
    """The text of a scrape.

    Args:
        usage: Rows of `list_usage_ever`, with the tokens of the current month.
        work: Rows of `count_work`.
        layers: Those whose work is told of also when there is none: a series that comes and goes looks like a fault.
        limits: Decide what is held.
        version: The service's.

    """
    month_tokens: Counter[str] = Counter()
    for row in usage:
        month_tokens[row["tenant"]] += row["month_tokens"]
    held = {tenant for tenant, tokens in month_tokens.items() if limits.is_reached(tenant, tokens)}
    build = GaugeMetricFamily("memobook_build_info", "Always 1; the label tells the version.", labels=["version"])
    build.add_metric([version], 1)
    registry = CollectorRegistry()
    registry.register(PROCESS_COLLECTOR)
    registry.register(_Read([build, *_model_metrics(usage), _work_metric(work, layers, held)]))
    return generate_latest(registry)


def _model_metrics(usage: Sequence[asyncpg.Record]) -> list[Metric]:
    labels = ["tenant", "layer"]
    calls = CounterMetricFamily(
        "memobook_model_calls", "Calls of the model with their retries, failures included.", labels=labels
    )
    failures = CounterMetricFamily(
        "memobook_model_failures", "Calls of the model that brought no answer in the end.", labels=labels
    )
    tokens = CounterMetricFamily(
        "memobook_model_tokens", "Tokens of prompts and of answers.", labels=[*labels, "direction"]
    )
    wait = CounterMetricFamily(
        "memobook_model_wait_seconds",
        "Time between questions and answers, waits for a free slot included.",
        labels=labels,
    )
    for row in usage:
        place = [row["tenant"], row["layer"]]
        calls.add_metric(place, row["calls"])
        failures.add_metric(place, row["failures"])
        tokens.add_metric([*place, "prompt"], row["prompt_tokens"])
        tokens.add_metric([*place, "completion"], row["completion_tokens"])
        wait.add_metric(place, row["wait_ms"] / 1_000)
    return [calls, failures, tokens, wait]


def _work_metric(work: Sequence[asyncpg.Record], layers: Sequence[str], held: set[str]) -> Metric:
    """How much stands how; each row of work counts once, so what is held is not also due."""
    rows = Counter({(status, layer): 0 for layer in layers for status in STATUSES})
    for row in work:
        status = "held" if row["status"] == "due" and row["tenant"] in held else row["status"]
        rows[status, row["layer"]] += row["rows"]
    gauge = GaugeMetricFamily(
        "memobook_work",
        "Background work of all tenants; held is what is due for a tenant that has used up its month's tokens.",
        labels=["status", "layer"],
    )
    for place, count in sorted(rows.items()):
        gauge.add_metric(place, count)
    return gauge
