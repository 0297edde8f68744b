"""The answers of a model that were refused while a work item was processed. Pure."""

from dataclasses import dataclass, field
from typing import Literal

import orjson

RefusalKind = Literal["declined", "form", "story", "repetition", "examples", "language", "shrunk", "unfinished"]
REFUSAL_KINDS = (
    "`declined`: the model does not want to answer. `form`: it is empty, cut off, or in a wrong form. `story`: it goes "
    "on with the story. `repetition`: it repeats a line. `examples`: it copies the prompt. `language`: it is not in "
    "the language of the messages. `shrunk`: it lost too much of the former text. `unfinished`: it ends too early."
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
