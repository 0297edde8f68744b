"""What the tests of tools share."""

from tests.memories.conftest import learn

__all__ = ["learn"]
