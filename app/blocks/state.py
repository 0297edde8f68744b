"""The state of core blocks, as JSON."""

from typing import Any
from uuid import UUID

from app.blocks.book import KIND
from app.blocks.bullets import LABEL
from app.blocks.fold import drop_deleted, fold
from app.blocks.queries import list_important_of_line
from app.kit.db import DbSession
from app.knowledge.reading import list_log_of_line


async def export_state(
    db_session: DbSession, line: tuple[UUID, UUID], *, only_chat: bool = False
) -> list[dict[str, Any]]:
    """Return the text of each block in each scope that a line sees, sorted by scope and label.

    The text of a scope is the one that the chat would see without the operations and the memories of nearer scopes.
    """
    log = drop_deleted(await list_log_of_line(db_session, line, KIND, only_chat=only_chat))
    important = await list_important_of_line(db_session, line, only_chat=only_chat)
    here = {(one.rank, one.character or "", one.key) for one in log}
    here |= {(one.rank, one.character or "", LABEL) for one in important}
    found = []
    for rank, character in sorted({(rank, character) for rank, character, _ in here}):
        visible = [one for one in log if one.rank >= rank]
        memories = [one for one in important if one.rank >= rank]
        for label, block in fold(visible, character or None, memories).items():
            if (rank, character, label) in here:
                found.append(
                    {
                        "scope": block.deciding.scope,
                        "character": character or None,
                        "label": label,
                        "text": block.text,
                        "origin": block.newest.origin,
                        "edited": block.edited,
                        "created_at": block.newest.learnt_at,
                    }
                )
    return found
