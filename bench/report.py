"""The results as Markdown, and the targets that they reach."""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, median_low
from typing import Any

import psutil

from bench.background import APPENDS_PER_SECOND, Hanging
from bench.chats import LONG
from bench.lines import APPENDS_PER_SECOND as APPENDS_BESIDE_COPIES
from bench.lines import BARS_S, Copies
from bench.load import Outcome
from bench.requests import WHATS, What
from bench.speed import Row, ratio_of
from bench.statements import Statements

_MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All measurements.

    Attributes:
        rows: The rows of the table.
        statements: The statements of one request, by kind of request and size.
        appends: The statements of each of a series of appends to one chat.
        ceiling: The speed of the load against a server that does nothing, by connections.
        context_tokens: The tokens of a context, by size.

    """

    rows: Sequence[Row]
    statements: dict[tuple[What, int], Statements]
    appends: Sequence[Statements]
    ceiling: dict[int, Outcome]
    context_tokens: dict[int, int]


@dataclass(frozen=True, slots=True)
class Target:
    """A target, and its measured value."""

    name: str
    limit: str
    measured: str
    reached: bool


def describe_machine() -> str:
    """Return the machine's cores, memory and system."""
    memory_gb = psutil.virtual_memory().total / 1e9
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {memory_gb:.0f} GB, {system}"


def write_report(findings: Findings, hanging: Hanging, copies: Copies) -> str:
    """Return the whole report as Markdown."""
    parts = [
        f"Measured on {describe_machine()}.",
        _write_targets([*list_targets(findings, hanging), *_judge_copies(copies)]),
        _write_speed(findings),
        _write_load(findings),
        _write_hanging(hanging),
        _write_copies(copies),
    ]
    return "\n\n".join(parts) + "\n"


def _write_speed(findings: Findings) -> str:
    heads = (
        *("", "messages", "conns", "req/s", "floor", "ratio", "p50 ms", "floor", "p99 ms", "floor"),
        *("CPU µs", "floor", "statements", "RSS MB"),
    )
    rows = [
        (
            *(row.what, f"{row.size:,}", row.connections),
            *(f"{_middle(outcomes, 'per_second'):,.0f}" for outcomes in _both(row)),
            f"{row.ratio:.2f}",
            *(f"{_middle(outcomes, 'p50_ms'):.2f}" for outcomes in _both(row)),
            *(f"{_middle(outcomes, 'p99_ms'):.2f}" for outcomes in _both(row)),
            *(f"{median(run.cpu_us for run in runs):.0f}" for runs in (row.service, row.floor)),
            _word_statements(findings.statements[row.what, row.size]),
            f"{max(run.rss_bytes for run in row.service) / _MB:.0f}",
        )
        for row in findings.rows
    ]
    return "### Speed\n\n" + _table(heads, rows)


def _both(row: Row) -> tuple[list[Outcome], list[Outcome]]:
    return [run.outcome for run in row.service], [run.outcome for run in row.floor]


def _write_targets(targets: Iterable[Target]) -> str:
    rows = [
        (target.name, target.limit, target.measured, "reached" if target.reached else "**missed**")
        for target in targets
    ]
    return "### Targets\n\n" + _table(("", "to reach", "measured", ""), rows)


def list_targets(findings: Findings, hanging: Hanging) -> list[Target]:
    """Return each target with its measured value; of several values, the worst."""
    targets = [_judge_floor(findings, what) for what in WHATS]
    targets += [_judge_length(findings, what) for what in WHATS]
    most = max(findings.statements["context", size].own for size in findings.context_tokens)
    targets.append(Target("statements of a context", "1", f"{most:.2f}", round(most, 2) <= 1))
    plain = median_low(sent.own for sent in findings.appends)  # most neither form a batch nor cut
    targets.append(Target("statements of an append without batch or cut", "≤ 3", f"{plain:.0f}", plain <= 3))
    rss = max(run.rss_bytes for row in findings.rows for run in row.service) / _MB
    targets.append(Target("memory of the API process", "< 160 MB", f"{rss:.0f} MB", rss < 160))
    ratio = hanging.ratio
    targets.append(Target("append p95, a model that hangs / a fast one", "≤ 1.1", f"{ratio:.2f}", ratio <= 1.1))
    return targets


def _judge_floor(findings: Findings, what: What) -> Target:
    worst = min(row.ratio for row in findings.rows if row.what == what and row.connections > 1)
    return Target(f"{what} at 32 connections / its floor", "≥ 0.4", f"{worst:.2f}", worst >= 0.4)


def _judge_length(findings: Findings, what: What) -> Target:
    """Compare the longest chats with those of 200 messages, at the worse number of connections."""
    longest = max(row.size for row in findings.rows)
    of_size = {(row.size, row.connections): row.service for row in findings.rows if row.what == what}
    worst = max(
        ratio_of(runs, of_size[longest, connections]) for (size, connections), runs in of_size.items() if size == LONG
    )
    return Target(f"{what}, {longest:,} messages / {LONG}", "≤ 1.15", f"{worst:.2f}", worst <= 1.15)


def _write_load(findings: Findings) -> str:
    heads = ("connections", "req/s at most", "p50 ms", "body bytes")
    rows = [
        (count, f"{outcome.per_second:,.0f}", f"{outcome.p50_ms:.3f}", f"{outcome.body_bytes:,.0f}")
        for count, outcome in findings.ceiling.items()
    ]
    busiest = max(run.outcome.busy for row in findings.rows for run in (*row.service, *row.floor))
    tokens = ", ".join(f"{size:,} messages: {tokens:,}" for size, tokens in findings.context_tokens.items())
    counts = sorted(Counter(sent.own for sent in findings.appends).items())
    kinds = ", ".join(f"{own:.0f} ({times} times)" for own, times in counts)
    return (
        f"### The load\n\n{_table(heads, rows)}\n\nIt never took more than {busiest:.2f} of a core in the runs above.\n"
        f"Tokens of a context: {tokens}.\nStatements of appends to one chat, besides BEGIN and COMMIT: {kinds}."
    )


def _write_hanging(hanging: Hanging) -> str:
    heads = ("model", "p50 ms", "p95 ms", "p99 ms")
    rows = [
        (name, *(f"{_middle(outcomes, figure):.2f}" for figure in ("p50_ms", "p95_ms", "p99_ms")))
        for name, outcomes in (("fast", hanging.fast), ("hangs", hanging.hanging))
    ]
    return f"### A model that hangs\n\n{APPENDS_PER_SECOND} appends a second.\n\n{_table(heads, rows)}"


def _judge_copies(copies: Copies) -> list[Target]:
    """Compare the slowest operation of each size with its limit."""
    worst: dict[int, float] = {}
    for (_, size), seconds in copies.seconds.items():
        worst[size] = max(worst.get(size, 0.0), median(seconds))
    return [
        Target(
            f"checkpoint, restore, fork of {size:,}", f"< {BARS_S[size]:g} s", f"{took_s:.2f} s", took_s < BARS_S[size]
        )
        for size, took_s in worst.items()
    ]


def _write_copies(copies: Copies) -> str:
    rows = [
        (verb, f"{size:,}", f"{median(seconds):.2f}", f"{max(seconds):.2f}")
        for (verb, size), seconds in copies.seconds.items()
    ]
    beside = [
        (name, *(f"{_middle(outcomes, figure):.2f}" for figure in ("p50_ms", "p95_ms", "p99_ms")))
        for name, outcomes in (("alone", copies.alone), ("beside copies", copies.beside))
    ]
    said = (
        f"{APPENDS_BESIDE_COPIES} appends a second to other chats, without copies and while the longest is copied"
        f" without a pause: p95 is then {copies.ratio:.1f} times as long."
    )
    tables = _table(("", "messages", "median s", "most s"), rows), _table(("", "p50 ms", "p95 ms", "p99 ms"), beside)
    return f"### Copies of a line\n\n{tables[0]}\n\n{said}\n\n{tables[1]}"


def _word_statements(statements: Statements) -> str:
    return f"{statements.own:.2f} + {statements.transaction:.0f}"


def _middle(outcomes: Iterable[Outcome], figure: str) -> float:
    return float(median(getattr(outcome, figure) for outcome in outcomes))


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
