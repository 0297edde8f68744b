"""What other rooms see of memos: the verbs of the book, and the layer as the pipeline asks for it."""

from app.memos.book import (
    delete_memo,
    edit_memo,
    get_memo,
    ids_in_window,
    list_book,
    regenerate_memo,
    write_person_memo,
)
from app.memos.changes import bring_along, catch_up, note_change, reopen
from app.memos.layer import (
    NAME,
    MemoDraft,
    list_covers,
    list_edges,
    plan,
    prepare,
    read_window,
    refresh,
    save_memo,
    settled_seq,
    tell,
)

__all__ = [
    "NAME",
    "MemoDraft",
    "bring_along",
    "catch_up",
    "delete_memo",
    "edit_memo",
    "get_memo",
    "ids_in_window",
    "list_book",
    "list_covers",
    "list_edges",
    "note_change",
    "plan",
    "prepare",
    "read_window",
    "refresh",
    "regenerate_memo",
    "reopen",
    "save_memo",
    "settled_seq",
    "tell",
    "write_person_memo",
]
