"""Stores the refused answers of a work item."""

from app.kit.db import DbSession
from app.kit.refusals import Refusal
from app.kit.work_queue import Claimed


async def record_refusal(db_session: DbSession, claimed: Claimed, refusal: Refusal) -> bool:
    """Append a refused answer to a claimed item; return whether the lease is still held. Else nothing is stored."""
    status = await db_session.raw.execute(
        "UPDATE work SET refusals = refusals || $6::jsonb"
        " WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5",
        claimed.owner.key,
        claimed.owner.line_id,
        claimed.layer,
        claimed.key,
        claimed.lease,
        refusal.to_json(),
    )
    return status == "UPDATE 1"
