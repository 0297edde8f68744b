"""The batch as the summarisers see it: who said what, in order. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Utterance:
    """One eligible message of a batch.

    Attributes:
        seq: Its place on the line.
        role: `user`, `assistant`, `narrator` or `system`.
        name: Who speaks, as the reader should see it; never empty.
        text: The content, unshortened.

    """

    seq: int
    role: str
    name: str
    text: str
