"""What a job works with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.fillable import Fillable
from app.kit.llm import LanguageModel


@dataclass(frozen=True, slots=True)
class JobContext:
    """The database, the clock, the model if one is configured, and the prompts that replace built-in ones, by name."""

    database: Database
    clock: Clock
    model: LanguageModel | None = None
    prompts: Mapping[str, Fillable] = field(default_factory=dict)

    def prompt(self, built_in: Fillable) -> Fillable:
        """Return the prompt that replaces `built_in`, else `built_in`."""
        return self.prompts.get(built_in.name, built_in)
