"""`make bench`: the speed of the service beside its floor, and how much its extractive memos keep.

    python -m bench [--quick] [--write] [--locomo locomo10.json]

The tables go to standard output, the progress to standard error. `bench/README.md` describes what is measured, and how.
`--write` replaces the tables in `bench/RESULTS.md`.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from app.local.stack import Stack
from bench.background import Hanging, compare_models
from bench.chats import LONG, chat_id
from bench.lines import IDLE, SIZES, measure_copies
from bench.load import Outcome, Plan
from bench.processes import Load, Refused, running_load, running_server, say
from bench.report import Findings, write_report
from bench.requests import CONTEXT_TOKENS, WHATS
from bench.speed import CONNECTIONS, Bench, Effort
from bench.stage import connected, fill, serving
from tests.scripted_model import ScriptedModel

RESULTS = Path(__file__).with_name("RESULTS.md")
MARK = "<!-- Below this line is what `python -m bench --write` wrote. -->\n"


@dataclass(frozen=True, slots=True)
class Extent:
    """The sizes and the durations of a measurement."""

    sizes: Sequence[int]
    effort: Effort
    hanging_s: float
    copy_sizes: Sequence[int]


FULL = Extent((20, 200, 2_000, 100_000), Effort(runs=5, warm_s=0.5, measure_s=2.0), 8.0, SIZES)
QUICK = Extent((20, 200, 2_000), Effort(runs=1, warm_s=0.3, measure_s=0.7), 3.0, SIZES[:1])


async def measure(data: Path, extent: Extent) -> str:
    """Measure everything on a separate stack below `data`; return the report."""
    say(f"Making chats of {', '.join(f'{size:,}' for size in extent.sizes)} messages …")
    key = await fill(data, extent.sizes)
    async with running_load() as load:
        async with serving(data, IDLE) as stack:
            findings = await _measure_speed(stack, load, key, extent)
        hanging = await _measure_hanging(data, load, key, extent)
        async with serving(data, IDLE) as stack:  # last, because it leaves many more rows behind
            copies = await measure_copies(
                stack,
                load,
                sizes=extent.copy_sizes,
                key=key,
                runs=extent.effort.runs,
                measure_s=extent.hanging_s,
            )
    return write_report(findings, hanging, copies)


async def _measure_speed(stack: Stack, load: Load, key: str, extent: Extent) -> Findings:
    """Return the figures of the table. Contexts come first, because appends change the contexts."""
    port = int(stack.url.rpartition(":")[2])
    tokens = {size: await _context_tokens(stack.url, size, key) for size in extent.sizes}
    environment = {"MEMOBOOK_DATABASE_URL": stack.urls.database_url}
    cells = [(what, size) for what in WHATS for size in extent.sizes]
    async with running_server(stack.directory, "floor", environment=environment) as floor_port:
        bench = Bench(load, stack.directory, service_port=port, floor_port=floor_port, key=key)
        rows = [
            row
            for what in WHATS
            for connections in CONNECTIONS
            for row in await bench.compare(what, connections, extent.sizes, extent.effort)
        ]
    async with connected(stack) as connection:
        statements = {(what, size): await bench.count(connection, what, size) for what, size in cells}
        appends = await bench.count_appends(connection, LONG)
    ceiling = await _measure_ceiling(stack, load, extent.effort, rows[0].service[0].outcome.body_bytes)
    return Findings(rows=rows, statements=statements, appends=appends, ceiling=ceiling, context_tokens=tokens)


async def _context_tokens(url: str, size: int, key: str) -> int:
    """Return the tokens of a context. Raises Refused if anything was left out of it, because trimming takes longer."""
    async with httpx.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {key}"}) as client:
        params: dict[str, str | int] = {"format": "openai", "max_tokens": CONTEXT_TOKENS}
        answer = await client.get(f"{url}/v1/chats/{chat_id(size, 0)}/context", params=params)
        context = answer.raise_for_status().json()
    if context["omitted"]:
        raise Refused(f"a context of {size} messages does not fit into {CONTEXT_TOKENS} tokens")
    return int(context["tokens"])


async def _measure_ceiling(stack: Stack, load: Load, effort: Effort, body_bytes: float) -> dict[int, Outcome]:
    """Return the speed of the load against a server that only answers, with as many bytes as a context has."""
    request = "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    async with running_server(stack.directory, "ceiling", round(body_bytes), environment={}) as port:
        return {
            connections: await load.run(
                Plan(port=port, requests=[request], connections=connections, measure_s=effort.measure_s)
            )
            for connections in CONNECTIONS
        }


async def _measure_hanging(data: Path, load: Load, key: str, extent: Extent) -> Hanging:
    async with ScriptedModel() as model:
        environment = {"MEMOBOOK_LLM_BASE_URL": model.base_url, "MEMOBOOK_LLM_MODEL": "scripted"}
        async with serving(data, environment) as stack, connected(stack) as connection:
            return await compare_models(
                load,
                connection,
                model,
                port=int(stack.url.rpartition(":")[2]),
                key=key,
                runs=extent.effort.runs,
                measure_s=extent.hanging_s,
            )


def write_results(report: str) -> None:
    """Replace the text below the mark in RESULTS.md by `report`."""
    head, _, _ = RESULTS.read_text(encoding="utf-8").partition(MARK)
    RESULTS.write_text(f"{head}{MARK}\n{report}", encoding="utf-8")


def measure_memos(locomo: Path | None) -> str:
    """Return the output of `bench.extractive`, or why it is not run."""
    heading = "### What extractive memos keep\n\n"
    if locomo is None or not locomo.is_file():
        return f"{heading}Skipped: `--locomo` or `LOCOMO` does not name the LoCoMo conversations.\n"
    command = (sys.executable, "-m", "bench.extractive", "--locomo", str(locomo.resolve()))
    done = subprocess.run(command, cwd=RESULTS.parents[1], check=True, capture_output=True, text=True)
    return heading + done.stdout


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the service beside its floor")
    parser.add_argument("--quick", action="store_true", help="one short run of everything except the longest chats")
    parser.add_argument("--write", action="store_true", help="also write the tables into bench/RESULTS.md")
    parser.add_argument("--locomo", type=Path, default=os.environ.get("LOCOMO"), metavar="PATH")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        report = asyncio.run(measure(Path(path) / "data", QUICK if options.quick else FULL))
    report = f"{report}\n{measure_memos(options.locomo)}"
    print(report)
    if options.write:
        write_results(report)


if __name__ == "__main__":
    main()
