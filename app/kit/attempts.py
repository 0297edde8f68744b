"""Stores what the attempts of a claimed work item leave for its next attempt: refused answers and finished parts.

Nothing is stored after the lease is lost.
"""

from typing import Any

import orjson

from app.kit.db import DbSession
from app.kit.refusals import Refusal
from app.kit.work_queue import Claimed

_IF_LEASED = "owner_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5"


async def record_refusal(db_session: DbSession, claimed: Claimed, refusal: Refusal) -> bool:
    """Append a refused answer to the item; return whether the lease is still held."""
    return await _update(db_session, claimed, "refusals = refusals || $6::jsonb", refusal.to_json())


async def save_progress(db_session: DbSession, claimed: Claimed, progress: dict[str, Any]) -> bool:
    """Store the finished parts; return whether the lease is still held. `schedule` drops them."""
    return await _update(db_session, claimed, "progress = $6::jsonb", orjson.dumps(progress).decode())


async def _update(db_session: DbSession, claimed: Claimed, assignment: str, value: str) -> bool:
    owner = claimed.owner
    item = (owner.key, owner.line_id, claimed.layer, claimed.key, claimed.lease)
    status = await db_session.raw.execute(f"UPDATE work SET {assignment} WHERE {_IF_LEASED}", *item, value)  # noqa: S608
    return status == "UPDATE 1"
