"""What other rooms see of diaries: their verbs, and the layer as the pipeline asks for it."""

from app.diary.book import (
    Folded,
    delete_entry,
    edit_entry,
    get_entry,
    list_entries,
    read_folded,
    save_memory,
    write_entry,
)
from app.diary.changes import bring_along, catch_up, note_change, reopen
from app.diary.layer import NAME, list_covers, list_edges, plan, prepare, refresh, settled_seq
from app.diary.segment import tell

__all__ = [
    "NAME",
    "Folded",
    "bring_along",
    "catch_up",
    "delete_entry",
    "edit_entry",
    "get_entry",
    "list_covers",
    "list_edges",
    "list_entries",
    "note_change",
    "plan",
    "prepare",
    "read_folded",
    "refresh",
    "reopen",
    "save_memory",
    "settled_seq",
    "tell",
    "write_entry",
]
