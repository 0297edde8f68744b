"""The contribution of scenes to a context: the running recap, from the line's row. Pure."""

import re

from app.kit.tokens import count_tokens
from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, View, list_gaps, place
from app.scenes.settings import SceneSettings

HEADING = "## Running Recap"

_HEADINGS = re.compile(r"^# ", re.MULTILINE)

SEGMENT = SegmentSpec(
    "recap",
    instruction='Under "Running Recap" stands what the scenes so far have come to: what has changed, what is still '
    "open, and how things stand.",
    leads=True,
)


def contribute(view: View) -> Contributed:
    """Return the running recap, unless it is empty or the settings leave it out, with the gaps and the edges."""
    cached = view.cached
    gaps = list_gaps(cached)
    edges = cached.get("edges", ())
    placement = place(SceneSettings.of(view.settings).recap)
    if placement is None or not cached.get("text"):
        return Contributed(gaps=gaps, edges=edges)
    item = Item(word(cached["text"]), cached["tokens"], (source_of(cached["version"]),))
    return Contributed((Contribution("recap", (item,), placement=placement),), gaps, edges)


def source_of(version: int | None) -> str:
    """Return the name of a version of the running recap among the sources of a context."""
    return f"recap:{version}"


def word(text: str) -> str:
    """Return the running recap under its heading, with its own headings one level below."""
    return f"{HEADING}\n\n{_HEADINGS.sub('### ', text)}"


def count_tokens_shown(text: str) -> int:
    """Count the tokens of the running recap with its heading."""
    return count_tokens(word(text))
