"""The state of core blocks, as JSON."""

from typing import Any
from uuid import UUID

from app.blocks.book import KIND
from app.blocks.fold import fold
from app.kit.db import DbSession
from app.knowledge.reading import list_log_of_line


async def export_state(db_session: DbSession, line: tuple[UUID, UUID]) -> list[dict[str, Any]]:
    """Return the text of each block in each scope that a line sees, sorted by scope and label.

    It is the text that a chat sees which has no operations of nearer scopes.
    """
    log = await list_log_of_line(db_session, line, KIND)
    scopes = sorted({(one.rank, one.character or "") for one in log})
    found = []
    for rank, character in scopes:
        visible = [one for one in log if one.rank >= rank]
        here = [one for one in log if (one.rank, one.character or "") == (rank, character)]
        for label, block in fold(visible, character or None).items():
            if any(one.key == label for one in here):
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
