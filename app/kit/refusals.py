"""The answers of a model that were refused while a work item was processed. Pure."""

from dataclasses import dataclass, field
from typing import Literal

import orjson

RefusalKind = Literal["declined", "form", "story", "repetition", "examples", "language", "shrunk", "unfinished"]
REFUSAL_KINDS = (
    "`declined`: the model does not want to answer. `form`: the answer is empty, cut off, or not in the form that was "
    "asked for. `story`: it goes on with the story. `repetition`: it repeats a line. `examples`: it copies an example "
    "of the prompt. `language`: it is in another language or script than the messages. `shrunk`: it keeps less than "
    "half of the former text, or hardly any of its words. `unfinished`: it ends in the middle of a sentence."
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an answer was refused.

    Attributes:
        kind: The fault.
        reason: One line that names the fault and does not quote the answer. People and the model read it, and logs
            have it.
        once: Whether a good answer can have this fault. If so, at most one answer of each work item is refused for it,
            and never the last answer that the model is asked for. This attribute is not stored.

    """

    kind: RefusalKind
    reason: str
    once: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        """Return the kind and the reason, as logs have them."""
        return f"{self.kind} ({self.reason})"

    def to_json(self) -> str:
        """Return the refusal as a JSON object."""
        return orjson.dumps({"kind": self.kind, "reason": self.reason}).decode()


def read_refusals(text: str) -> tuple[Refusal, ...]:
    """Return the refusals in a JSON array of objects, in their order."""
    return tuple(Refusal(**one) for one in orjson.loads(text))
