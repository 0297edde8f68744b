"""Which examples Hypothesis draws: always the same ones, or those of TESTS_SEED (README.md of tests/oracle)."""

import os

import pytest
from hypothesis import HealthCheck, settings

SEED = os.environ.get("TESTS_SEED", "")
"""What chooses the examples of all tests; if it is empty, those of a test depend only on the test."""

# The time that a test takes is no verdict, and neither is the time in which its examples are generated.
settings.register_profile("memobook", deadline=None, derandomize=not SEED, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memobook")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the seed to Hypothesis, before its plugin reads the option, unless the command line has one."""
    if SEED and getattr(config.option, "hypothesis_seed", SEED) is None:
        config.option.hypothesis_seed = SEED
