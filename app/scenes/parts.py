"""The recaps of the parts of a long scene, kept with the work item between attempts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

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


def parts_to_json(source: str, parts: Sequence[ScenePart]) -> dict[str, Any]:
    """Return the parts for storage; `source` identifies the messages and the prompt that they were made from."""
    return {"source": source, "parts": [asdict(part) for part in parts]}


def parts_from_json(source: str, stored: Mapping[str, Any]) -> list[ScenePart]:
    """Return what `parts_to_json` stored, or no parts if they were made from another source."""
    if stored.get("source") != source:
        return []
    return [
        ScenePart(part["last_seq"], SceneText(**part["text"]), part["model"], part.get("refused", 0))
        for part in stored["parts"]
    ]
