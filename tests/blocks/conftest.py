"""What the tests of core blocks share."""

import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.memories.asking import Learner


@pytest.fixture
def learn(database: Database, tenant: str, clock: SteppedClock) -> Learner:
    """Learns from messages as a job does."""
    return Learner(database, tenant, clock)
