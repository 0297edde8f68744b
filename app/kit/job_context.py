"""The context that background jobs run in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.fillable import Fillable
from app.kit.llm import LanguageModel


@dataclass(frozen=True, slots=True)
class JobContext:
    """The dependencies of a background job.

    Attributes:
        database: The database.
        clock: The service's clock.
        model: The model; None if none is configured.
        prompts: Prompts that replace built-in ones, by name.

    """

    database: Database
    clock: Clock
    model: LanguageModel | None = None
    prompts: Mapping[str, Fillable] = field(default_factory=dict)

    def prompt(self, built_in: Fillable) -> Fillable:
        """Return the prompt that replaces `built_in`, or `built_in` itself if there is none."""
        return self.prompts.get(built_in.name, built_in)
