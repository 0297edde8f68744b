"""A deployment's settings for the requests to its model, for all layers or for one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

OWN_SETTINGS = frozenset({"model", "messages", "max_tokens", "max_completion_tokens", "temperature", "stream", "n"})
"""Names that extra parameters cannot have: the service sets these parameters itself, or relies on their defaults."""


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Settings for requests. For a setting that is None, the value of the prompt or of the client applies.

    Attributes:
        model: The model's name.
        max_tokens: The limit of an answer, in tokens. A model that reasons needs more tokens than its answer has.
        temperature: The sampling temperature.
        extra_body: Further parameters of the request, such as `reasoning_effort`.

    """

    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    extra_body: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def merge(self, other: "RequestSettings") -> "RequestSettings":
        """Return these settings, overridden by those that are set in `other`; extra parameters are merged by name."""
        return replace(
            self,
            model=self.model if other.model is None else other.model,
            max_tokens=self.max_tokens if other.max_tokens is None else other.max_tokens,
            temperature=self.temperature if other.temperature is None else other.temperature,
            extra_body={**self.extra_body, **other.extra_body},
        )
