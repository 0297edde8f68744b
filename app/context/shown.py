"""What the chat's row holds of the layers, as a context takes it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from app.chats.ranges import Range, join_ranges
from app.chats.told import Told
from app.context.segments import Segment

_LEFT_BY: Mapping[Literal["folds", "scenes"], str] = {"folds": "summary", "scenes": "scenes"}
"""The layer that leaves the edges of a kind on the chat's row."""


def place_told(told: Told) -> Segment:
    """The segment of what a layer has told. Only among the messages it has a role of its own: nobody speaks before."""
    among = told.place == "in_chat"
    return Segment(
        told.name,
        told.text,
        told.tokens,
        told.role if among else "system",
        told.sources,
        after=None if told.place == "in_order" else told.place,
        depth=told.depth if among else 0,
        scan=told.scan,
    )


def choose_character(characters: Sequence[Mapping[str, Any]], asked: str | None) -> str | None:
    """Whose prompt it is: who was asked for, else the only character that is not disabled, else nobody."""
    if asked is not None:
        return asked
    names: list[str] = [character["name"] for character in characters if not character.get("disabled")]
    return names[0] if len(names) == 1 else None


def find_edges(kind: Literal["folds", "scenes"], shown: Mapping[str, Mapping[str, Any]]) -> Sequence[int]:
    """Where the history may be cut, as the layer has left it whose edges these are."""
    edges: Sequence[int] = shown.get(_LEFT_BY[kind], {}).get("edges", ())
    return edges


def join_gaps(of_layers: Iterable[Mapping[str, Any]]) -> list[Range]:
    """All `gaps` (inclusive) in order, those that touch or overlap as one."""
    return join_ranges(sorted((first, last) for one in of_layers for first, last in one.get("gaps", ())))
