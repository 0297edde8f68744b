"""Memobook: the memory service behind companion and roleplay chat."""

from importlib.metadata import version
from typing import Final

RELEASE: Final = version("memobook")
"""The version of the service, as it is in `pyproject.toml`."""
