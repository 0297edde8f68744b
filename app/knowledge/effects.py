"""Says in words what calls of tools wrote, for the list of calls."""

from collections.abc import Sequence
from uuid import UUID

from app.bindings.rule import quote
from app.kit.db import DbSession
from app.knowledge import queries
from app.knowledge.queries import Line, Written


async def describe_writes(db_session: DbSession, line: Line, written_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return what each call did on a line, in words without a full stop, by `written_id` (`layers/tool.py`)."""
    found = await queries.list_written(db_session, line, written_ids)
    return {written_id: f"{word_written(one)} (statement {written_id})" for written_id, one in found.items()}


def word_written(written: Written) -> str:
    """Return in a few words what a tool call did, given the statement that it wrote. Pure."""
    key, content = quote(written.key), quote(written.content or "")
    match written.kind, written.operation:
        case "memory", _:
            return f"Forgot the memory {written.key}"
        case "block", "append":
            return f"Appended {content} to the block {key}"
        case "block", "search_replace":
            return f"Replaced {quote(written.pattern or '')} by {content} in the block {key}"
        case "block", _:
            return f"Wrote the block {key}: {content}"
    return f"Deleted the fact {key}" if written.content is None else f"Set the fact {key} to {content}"
