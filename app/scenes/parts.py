"""The recaps of the parts of a long scene, kept with the work item between attempts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from app.scenes.answers import SceneText


@dataclass(frozen=True, slots=True)
class ScenePart:
    """The recap of a part of a scene.

    Attributes:
        last_seq: The last message of the part.
        text: Its recap.
        model: The model that made it.
        refused: How many answers had been refused for the scene when the part was made.

    """

    last_seq: int
    text: SceneText
    model: str
    refused: int = 0


@dataclass(frozen=True, slots=True)
class MadeParts:
    """The parts of a scene that are made, in order.

    Attributes:
        source: Identifies the messages and the prompt that they were made from.
        parts: The parts.
        refused: How many answers had been refused for the scene before the first of these parts was asked for. They
            belong to earlier parts, which were made from another source and have been thrown away.

    """

    source: str
    parts: Sequence[ScenePart] = ()
    refused: int = 0

    @property
    def refused_before(self) -> int:
        """How many answers have been refused for the scene before the next part is asked for."""
        return self.parts[-1].refused if self.parts else self.refused

    def to_json(self) -> dict[str, Any]:
        """Return the parts for storage."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], source: str, *, refused: int) -> Self:
        """Return the stored parts, or none if they were made from another source than `source`.

        Args:
            stored: What `to_json` returned; empty if nothing is stored.
            source: Identifies the present messages and prompt.
            refused: How many answers have been refused for the scene so far.

        """
        if not stored:
            return cls(source)
        if stored["source"] != source:
            return cls(source, refused=refused)
        parts = [
            ScenePart(part["last_seq"], SceneText(**part["text"]), part["model"], part.get("refused", 0))
            for part in stored["parts"]
        ]
        return cls(source, parts, stored.get("refused", 0))
