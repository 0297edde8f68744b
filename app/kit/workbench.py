"""What a job works with."""

from dataclasses import dataclass

from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.llm import ModelClient


@dataclass(frozen=True, slots=True)
class Workbench:
    """The database, the clock, and the model if one is configured."""

    database: Database
    clock: Clock
    model: ModelClient | None = None
