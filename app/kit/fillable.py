"""The interface of prompts that jobs use."""

from typing import Protocol

from app.kit.llm import ChatMessage


class Fillable(Protocol):
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
