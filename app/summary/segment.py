"""What the summary puts into a context, from what the chat's row holds of it. Pure."""

from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, View, list_gaps, place
from app.summary.settings import SummarySettings

HEADING = "## Recent Conversation Summary"

SEGMENT = SegmentSpec(
    "summary",
    instruction='Under "Recent Conversation Summary" stands what was said and done in this conversation before the '
    "messages below, and how it felt.",
)

DOCUMENTS = """
    SELECT 'summary:' || (c.context_cache -> 'summary' ->> 'version'), c.context_cache -> 'summary' ->> 'text', 1,
        (c.context_cache -> 'summary' ->> 'last_seq')::int
    WHERE c.context_cache -> 'summary' ->> 'text' <> ''"""


def contribute(view: View) -> Contributed:
    """The version that is shown, under its heading."""
    cached = view.cached
    gaps = list_gaps(cached)
    edges = cached.get("edges", ())
    placement = place(SummarySettings.of(view.settings))
    if placement is None or not cached.get("text"):
        return Contributed(gaps=gaps, edges=edges)
    item = Item(word(cached["text"]), cached["tokens"], (source_of(cached["version"]),))
    return Contributed((Contribution("summary", (item,), placement=placement),), gaps, edges)


def source_of(version: int | None) -> str:
    """How the sources of a context name a version."""
    return f"summary:{version}"


def word(text: str) -> str:
    """A version's text under its heading."""
    return f"{HEADING}\n\n{text}"
