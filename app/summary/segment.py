"""The contribution of the summary to a context, from the line's row. Pure."""

from app.layers.contribution import Contributed, Contribution, Item, SegmentSpec, View, list_gaps, placement_of
from app.summary.settings import SummarySettings

HEADING = "## Recent Conversation Summary"

SEGMENT = SegmentSpec(
    "summary",
    instruction='"Recent Conversation Summary" is what was said and done in this conversation before the messages '
    "below, and how it felt.",
)

DOCUMENTS = """
    SELECT 'summary:' || (c.context_cache -> 'summary' ->> 'version'), c.context_cache -> 'summary' ->> 'text', 1,
        (c.context_cache -> 'summary' ->> 'last_seq')::int, NULL::text, NULL::float8
    WHERE c.context_cache -> 'summary' ->> 'text' <> ''"""


def contribute(view: View) -> Contributed:
    """Return the gaps and the edges, and the stored version unless it is empty or the settings leave it out."""
    cached = view.cached
    gaps = list_gaps(cached)
    edges = cached.get("edges", ())
    placement = placement_of(SummarySettings.of(view.settings))
    if placement is None or not cached.get("text"):
        return Contributed(gaps=gaps, edges=edges)
    item = Item(word(cached["text"]), cached["tokens"], (source_of(cached["version"]),))
    return Contributed((Contribution("summary", (item,), placement=placement),), gaps, edges)


def source_of(version: int | None) -> str:
    """Return the name by which the sources of a context list a version."""
    return f"summary:{version}"


def word(text: str) -> str:
    """Return a version's text under its heading."""
    return f"{HEADING}\n\n{text}"
