"""make soak: inject faults for some minutes. Exits with 1 at the first violation."""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.soak.faults import FAULTS, Fault
from tests.soak.ledger import Violation
from tests.soak.run import Soak, choose, soaking
from tests.soak.stack import open_directory

HOLD_S = (0.5, 2.5)
FULL_EVERY = 20


async def run(minutes: float, seed: int, names: list[str]) -> int:
    """Soak; return the exit code."""
    rng = random.Random(f"{seed}-faults")
    faults = [fault for fault in FAULTS if not names or fault.name in names]
    following = choose(faults, rng)
    with open_directory() as path:
        say(f"seed {seed}, logs in {path}")
        async with soaking(path, seed) as soak:
            ends_s = time.monotonic() + 60 * minutes
            try:
                await _soak(soak, lambda: (following(), rng.uniform(*HOLD_S)), ends_s)
            except Violation as violation:
                summarise(soak, 1)
                say(f"VIOLATION: {violation}")
                return await _keep(path, seed)
            summarise(soak, 0)
    return 0


async def _keep(path: Path, seed: int) -> int:
    """Copy the logs, which are removed with the directory, and return the exit code."""
    kept = await asyncio.to_thread(_copy_logs, path)
    say(f"repeat with SEED={seed}; the logs are in {kept}")
    return 1


def _copy_logs(path: Path) -> Path:
    kept = Path(tempfile.mkdtemp(prefix="soak-logs-"))
    for log in (*path.glob("*.log"), *path.glob("data/logs/*.log")):
        shutil.copy(log, kept)
    return kept


async def _soak(soak: Soak, following: Callable[[], tuple[Fault, float]], ends_s: float) -> None:
    number = 0
    while time.monotonic() < ends_s:
        number += 1
        fault, hold_s = following()
        began_s = time.monotonic()
        try:
            line = await soak.survive(fault, hold_s=hold_s, full=number % FULL_EVERY == 0)
        except Violation as violation:
            raise Violation(f"after fault {number}, {fault.name} ({fault.what}): {violation}") from violation
        say(f"{number:4} {time.monotonic() - began_s:5.1f} s  {line}")
    await soak.check(full=True)


def summarise(soak: Soak, violations: int) -> None:
    """Print what was done."""
    for name, number in sorted(soak.count.items()):
        say(f"  {number:8,}  {name}")
    for name, peak_bytes in soak.peaks.items():
        say(f"  {peak_bytes // 1_048_576:8,}  MiB of {name}, at most")
    say(f"  {violations:8,}  violations")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Read the arguments, and soak."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--fault", action="append", default=[], help="only faults of this name; can be repeated")
    options = parser.parse_args()
    return asyncio.run(run(options.minutes, options.seed, options.fault))


if __name__ == "__main__":
    sys.exit(main())
