"""TESTS_SEED chooses the examples of every property test, also of one that runs by itself."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from tests import conftest, examples

ROOT = Path(__file__).parents[2]
DRAWING = """
from hypothesis import given, settings, strategies as st

drawn = []

@settings(max_examples=5)
@given(st.integers())
def test_integers(number):
    drawn.append(number)

def test_they_are_shown():
    print("drawn:", drawn)
"""


def test_all_tests_have_the_seed() -> None:
    assert conftest.pytest_configure is examples.pytest_configure


async def _draw(file: Path, seed: str, *options: str) -> str:
    """Run a file of tests with a seed, without the other plugins, and return the examples."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-s", "-p", "_hypothesis_pytestplugin", "-p", "tests.examples"),
        *("-p", "no:cacheprovider", "-c", os.devnull, *options, str(file)),
        cwd=ROOT,
        env=os.environ | {"TESTS_SEED": seed, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        stdout=PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    (line,) = (line for line in output.decode().splitlines() if "drawn: " in line)
    return line.partition("drawn: ")[2]


async def test_the_same_seed_gives_the_same_examples(tmp_path: Path) -> None:
    file = tmp_path / "test_drawing.py"
    file.write_text(DRAWING, encoding="utf-8")
    first, second, of_another = [await _draw(file, seed) for seed in ("7", "7", "8")]
    assert first == second
    assert first != of_another
    assert await _draw(file, "8", "--hypothesis-seed=7") == first, "an option of the command line comes first"
