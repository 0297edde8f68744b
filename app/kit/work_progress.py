"""Stores what the attempts of a work item have made so far."""

from typing import Any

import orjson

from app.kit.db import DbSession
from app.kit.work_queue import Claimed


async def save_progress(db_session: DbSession, claimed: Claimed, progress: dict[str, Any]) -> None:
    """Store what an attempt has made for the next one, if the lease is still held; `schedule` drops it."""
    await db_session.raw.execute(
        "UPDATE work SET progress = $6::jsonb"
        " WHERE owner_key = $1 AND line_id = $2 AND layer = $3 AND key = $4 AND lease = $5",
        claimed.owner.key,
        claimed.owner.line_id,
        claimed.layer,
        claimed.key,
        claimed.lease,
        orjson.dumps(progress).decode(),
    )
