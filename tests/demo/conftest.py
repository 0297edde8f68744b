"""Fixtures for the tests of the demo."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A directory that PostgreSQL's user can reach, as pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="demo-", dir="/tmp") as path:
        Path(path).chmod(0o711)
        yield Path(path).resolve()
