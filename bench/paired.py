"""Compare the speed of contexts and appends of two checkouts.

    python -m bench.paired --against DIR [--rounds 30]

Each checkout runs its own embedded stack, in a separate directory, with the virtual environment of its Makefile, on
chats that its own `bench` creates. A cell is measured in rounds of half a second per side, in alternating order: the
speed of a shared machine drifts within seconds. Ratios are computed within a round, this checkout over the other;
the table has their median. Above 1, this checkout is faster.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from bench.load import Outcome, Plan
from bench.processes import Load, running_load, say
from bench.requests import WHATS, What, write_requests
from bench.speed import CONNECTIONS

HERE = Path(__file__).resolve().parents[1]
SIZES = (200, 2_000)
WARM_S, MEASURE_S = 0.1, 0.5

# Each checkout's own interpreter runs this in its own folder, so it imports the modules of that checkout.
_FILL = """
import asyncio, sys
from pathlib import Path
from bench.stage import fill
print(asyncio.run(fill(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]])))
"""
_SERVE = """
import asyncio, sys
from pathlib import Path
from bench.lines import IDLE
from bench.stage import serving

async def main():
    async with serving(Path(sys.argv[1]), IDLE) as stack:
        print(stack.url.rpartition(":")[2], flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Side:
    """A checkout that is being served."""

    port: int
    key: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A measurement: requests of one kind, to chats of one size, over a number of connections."""

    what: What
    size: int
    connections: int


@asynccontextmanager
async def served(checkout: Path, data: Path) -> AsyncGenerator[Side]:
    """Run the service of a checkout for the duration of the block. Raises EOFError if it does not start."""
    say(f"Making chats in {checkout.name} …")
    key = await _read_line(await _start(checkout, _FILL, data, *SIZES))
    async with start_checkout(checkout, _SERVE, data) as line:
        yield Side(int(line), key)


@asynccontextmanager
async def start_checkout(checkout: Path, code: str, *arguments: object) -> AsyncGenerator[str]:
    """Run `code` with a checkout's interpreter until the block ends, which closes its standard input.

    Yields the first line that it prints. Raises EOFError if it ends before.
    """
    process = await _start(checkout, code, *arguments)
    try:
        yield await _read_line(process)
    finally:
        if process.stdin:
            process.stdin.close()
        await process.wait()


async def measure(sides: Sequence[Side], load: Load, rounds: int) -> dict[Cell, list[list[Outcome]]]:
    """Return for each cell the outcomes of every round, in the order of `sides`."""
    cells = [Cell(what, size, connections) for what in WHATS for connections in CONNECTIONS for size in SIZES]
    found: dict[Cell, list[list[Outcome]]] = {cell: [] for cell in cells}
    for cell in cells:
        for number in range(rounds):
            order = list(enumerate(sides))
            outcomes = {at: await _run(load, side, cell) for at, side in (order[::-1] if number % 2 else order)}
            found[cell].append([outcomes[at] for at in range(len(sides))])
    return found


def write_table(found: dict[Cell, list[list[Outcome]]]) -> str:
    """Return the ratios and speeds as Markdown."""
    lines = [
        "| | messages | connections | before/s | now/s | ratio | half of the rounds |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for cell, rounds in found.items():
        ratios = [now.per_second / before.per_second for now, before in rounds]
        now, before = (median(outcomes[at].per_second for outcomes in rounds) for at in (0, 1))
        lower, _, upper = quantiles(ratios, n=4)
        spread = f"{lower:.2f}–{upper:.2f}"
        lines.append(
            f"| {cell.what} | {cell.size:,} | {cell.connections} | {before:,.0f} | {now:,.0f}"
            f" | **{median(ratios):.2f}** | {spread} |"
        )
    return "\n".join(lines)


async def _run(load: Load, side: Side, cell: Cell) -> Outcome:
    requests = write_requests(cell.what, cell.size, side.key)
    plan = Plan(port=side.port, requests=requests, connections=cell.connections, warm_s=WARM_S, measure_s=MEASURE_S)
    return await load.run(plan)


async def _start(checkout: Path, code: str, *arguments: object) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        checkout / ".venv" / "bin" / "python",
        *("-c", code, *map(str, arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=checkout,
    )


async def _read_line(process: asyncio.subprocess.Process) -> str:
    line = await process.stdout.readline() if process.stdout else b""
    if not line:
        raise EOFError("a checkout ended before it answered")
    return line.decode().strip()


async def compare(against: Path, data: Path, rounds: int) -> str:
    """Return the table of this checkout beside another one."""
    async with (
        served(HERE, data / "here") as here,
        served(against, data / "there") as there,
        running_load() as load,
    ):
        return write_table(await measure((here, there), load, rounds))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.paired", description="Two checkouts side by side")
    parser.add_argument("--against", type=Path, required=True, metavar="DIR", help="the other checkout")
    parser.add_argument("--rounds", type=int, default=30, metavar="N", help="how often each cell is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        sys.stdout.write(asyncio.run(compare(options.against.resolve(), Path(path), options.rounds)) + "\n")


if __name__ == "__main__":
    main()
