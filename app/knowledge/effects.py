"""Says in words what calls of tools wrote, for the list of calls."""

from collections.abc import Sequence
from uuid import UUID

from app.kit.db import DbSession
from app.knowledge import queries
from app.knowledge.queries import Line, Written

MAX_QUOTED_CHARS = 120


async def describe_writes(db_session: DbSession, line: Line, written_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return what each call wrote that taught a statement on a line, by its id: a sentence without its full stop."""
    found = await queries.list_written(db_session, line, written_ids)
    return {written_id: f"{word_written(one)} (statement {written_id})" for written_id, one in found.items()}


def word_written(written: Written) -> str:
    """Return what a statement says, in a few words. Pure."""
    key, content = _quote(written.key), _quote(written.content or "")
    match written.kind, written.operation:
        case "memory", _:
            return f"Forgot the memory {written.key}"
        case "block", "append":
            return f"Appended {content} to the block {key}"
        case "block", "search_replace":
            return f"Replaced {_quote(written.pattern or '')} by {content} in the block {key}"
        case "block", _:
            return f"Wrote the block {key}: {content}"
    return f"Deleted the fact {key}" if written.content is None else f"Set the fact {key} to {content}"


def _quote(text: str) -> str:
    """Return a text on one line, in quotation marks and at most MAX_QUOTED_CHARS long."""
    words = " ".join(text.split())
    return f"“{words if len(words) <= MAX_QUOTED_CHARS else f'{words[: MAX_QUOTED_CHARS - 1]}…'}”"
