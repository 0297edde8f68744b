"""What the tests that walk through all layers need to know of each one: its sample, in `tests/<name>/sample.py`."""

import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType

import httpx

from app.kit.clock import SteppedClock
from app.registry import LAYERS
from app.sweep import Sweep
from tests.scripted_model import Reply, Request, ScriptedModel


@dataclass(frozen=True)
class Stage:
    """A service with a worker and a scripted model."""

    api: httpx.AsyncClient
    sweep: Sweep
    clock: SteppedClock
    model: ScriptedModel

    async def settle(self, answer: Callable[[Request], str | Reply]) -> None:
        """Make everything that is due with this answer of the model."""
        self.model.otherwise = answer
        self.clock.step(5)
        await self.sweep.drain()


@dataclass(frozen=True)
class LastAttempt:
    """How the work of a job becomes due in the chat `c`, and what changes its source while it is made.

    Attributes:
        key: A pattern of LIKE for the key of the work item.
        make_due: Schedules the work item.
        change: An UPDATE statement without WHERE, after which the job finds that its source has changed.

    """

    key: str
    make_due: Callable[[Stage], Awaitable[None]]
    change: str


@dataclass(frozen=True, kw_only=True)
class LayerSample:
    """What the walking tests need of a layer. What is not given stands for a layer that has nothing of the kind.

    Attributes:
        last_attempts: By the prefix of each job, how its last attempt fails because its source changed.
        jobs_without_draft: The prefixes of jobs whose source cannot change, because they read and write in one
            transaction.

    """

    last_attempts: Mapping[str, LastAttempt] = field(default_factory=dict)
    jobs_without_draft: frozenset[str] = frozenset()


def find_sample(layer_name: str) -> LayerSample | None:
    """The `SAMPLE` of `tests/<layer_name>/sample.py`, or None if there is none."""
    sample = getattr(_import_if_there(f"tests.{layer_name}.sample"), "SAMPLE", None)
    return sample if isinstance(sample, LayerSample) else None


def _import_if_there(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise


SAMPLES: Mapping[str, LayerSample] = {layer.name: find_sample(layer.name) or LayerSample() for layer in LAYERS}
"""The sample of each registered layer. `test_samples.py` fails where one is missing or leaves something out."""
