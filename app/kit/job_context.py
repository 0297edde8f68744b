"""What a job works with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.fillable import Fillable
from app.kit.llm import LanguageModel


@dataclass(frozen=True, slots=True)
class JobContext:
    """The database, the clock, the model if one is configured, and what it is asked.

    `prompts` holds prompts by name; one that is not in it is asked as its layer has it built in.
    """

    database: Database
    clock: Clock
    model: LanguageModel | None = None
    prompts: Mapping[str, Fillable] = field(default_factory=dict)
