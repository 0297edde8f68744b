"""The context that background jobs run in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.llm.client import ChatMessage, LanguageModel
from app.kit.llm.embeddings import Embeddings


class PromptTemplate(Protocol):
    """A prompt template. Implemented by `app.summarising.prompts.Prompt`."""

    @property
    def name(self) -> str:
        """The name of the prompt, unique among all layers."""
        ...

    @property
    def version(self) -> str:
        """The version of the prompt, stored with every result that it produces."""
        ...

    def fill(self, **texts: str) -> list[ChatMessage]:
        """Return the messages of the prompt with each placeholder replaced by the text of the same name."""
        ...


class TextEmbedder(Protocol):
    """A model that turns texts into vectors, or a wrapper that counts its calls (`app/embeddings/metered.py`)."""

    @property
    def name(self) -> str:
        """The name of the model."""
        ...

    @property
    def dimension(self) -> int | None:
        """The number of components of a vector; None until it is known."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the vectors of `texts`, which must not be blank. Raises ModelError."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True, slots=True)
class JobContext:
    """The dependencies of a background job.

    Attributes:
        database: The database.
        clock: The service's clock.
        model: The model; None if none is configured.
        layer_models: The models of single layers, by the layer's name; other layers use `model`.
        prompts: Prompts that replace built-in ones, by name.
        embedder: The model that turns texts into vectors; None if none is configured.
        save_s: For how many seconds a job tries to save its result while the database is unavailable. After this time,
            the result is dropped; a try that has begun is not interrupted.

    """

    database: Database
    clock: Clock
    model: LanguageModel | None = None
    prompts: Mapping[str, PromptTemplate] = field(default_factory=dict)
    layer_models: Mapping[str, LanguageModel] = field(default_factory=dict)
    embedder: TextEmbedder | None = None
    save_s: float = 10.0

    def prompt(self, built_in: PromptTemplate) -> PromptTemplate:
        """Return the prompt that replaces `built_in`, or `built_in` itself if there is none."""
        return self.prompts.get(built_in.name, built_in)
