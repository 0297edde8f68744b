"""The messages that summarisers read. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Utterance:
    """An eligible message.

    Attributes:
        seq: Its position on the line.
        role: `user`, `assistant`, `narrator` or `system`.
        name: The speaker's name as readers see it; never empty.
        text: The whole content.

    """

    seq: int
    role: str
    name: str
    text: str
