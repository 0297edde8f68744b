"""The state of facts, as JSON."""

from typing import Any
from uuid import UUID

from app.facts.book import KIND
from app.kit.db import DbSession
from app.knowledge.known import Rating
from app.knowledge.reading import list_newest, list_ratings_on_line


async def export_state(
    db_session: DbSession, line: tuple[UUID, UUID], *, only_chat: bool = False
) -> list[dict[str, Any]]:
    """Return the newest live value of each key in each scope that a line sees, sorted by scope and key."""
    known = await list_newest(db_session, line, KIND, only_chat=only_chat)
    ratings = await list_ratings_on_line(db_session, line, known, only_chat=only_chat)
    rated = {one.statement_id: ratings.get(one.statement_id, Rating()) for one in known}
    return [
        {
            "scope": one.scope,
            "character": one.character,
            "key": one.key,
            "value": one.content,
            "origin": one.origin,
            "edited": one.edited,
            "category": rated[one.statement_id].category,
            "importance": rated[one.statement_id].importance,
            "tags": list(rated[one.statement_id].tags),
            "created_at": one.learnt_at,
        }
        for one in sorted(known, key=lambda one: (one.rank, one.character or "", one.key))
    ]
