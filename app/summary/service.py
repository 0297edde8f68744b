"""What other rooms see of the summary: its verbs, and the layer as the pipeline asks for it."""

from app.summary.book import get_summary, list_versions, regenerate_summary, write_summary
from app.summary.changes import bring_along, catch_up, note_change, reopen
from app.summary.layer import NAME, list_covers, list_edges, note_cut, plan, prepare, refresh, settled_seq
from app.summary.segment import tell

__all__ = [
    "NAME",
    "bring_along",
    "catch_up",
    "get_summary",
    "list_covers",
    "list_edges",
    "list_versions",
    "note_change",
    "note_cut",
    "plan",
    "prepare",
    "refresh",
    "regenerate_summary",
    "reopen",
    "settled_seq",
    "tell",
    "write_summary",
]
