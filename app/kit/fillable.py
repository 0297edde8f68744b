"""What a job needs of a prompt, whoever wrote it."""

from typing import Protocol

from app.kit.llm import ChatMessage


class Fillable(Protocol):
    """A prompt with places for what differs. `app.summarising.prompts.Prompt` is one."""

    @property
    def name(self) -> str:
        """Identifies the prompt among those of all layers."""
        ...

    @property
    def version(self) -> str:
        """Stored with everything that is made with it."""
        ...

    def fill(self, **texts: str) -> list[ChatMessage]:
        """Put `texts` into the places of the same names."""
        ...
