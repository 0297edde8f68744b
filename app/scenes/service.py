"""What other rooms see of scenes: their verbs, and the layer as the pipeline asks for it.

The verbs of the running recap are in `recap.py`.
"""

from app.scenes.book import (
    Listed,
    ask_for_look,
    edit_scene,
    get_scene,
    list_scenes,
    regenerate_scene,
    toggle_break,
)
from app.scenes.changes import bring_along, catch_up, note_change, reopen
from app.scenes.closing import note_cut
from app.scenes.layer import list_covers, list_edges, plan, prepare, refresh, settled_seq
from app.scenes.segment import tell
from app.scenes.work import NAME

__all__ = [
    "NAME",
    "Listed",
    "ask_for_look",
    "bring_along",
    "catch_up",
    "edit_scene",
    "get_scene",
    "list_covers",
    "list_edges",
    "list_scenes",
    "note_change",
    "note_cut",
    "plan",
    "prepare",
    "refresh",
    "regenerate_scene",
    "reopen",
    "settled_seq",
    "tell",
    "toggle_break",
]
