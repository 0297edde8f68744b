"""Stores what an attempt at a claimed work item leaves for the next attempt: refused answers, finished parts, a delay.

Nothing is stored after the lease is lost.
"""

from datetime import datetime
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
    """Store the finished parts; return whether the lease is still held. A later `schedule` of the item drops them."""
    return await _update(db_session, claimed, "progress = $6::jsonb", orjson.dumps(progress).decode())


async def start_over(db_session: DbSession, claimed: Claimed, *, now: datetime) -> bool:
    """Make an item due again, usually because its source has changed; return whether the lease is still held.

    Its attempts are counted from zero again, and its refused answers and finished parts are dropped. The next attempt
    is delayed by the time for which the item has been due so far, at least 1 and at most 60 seconds, so that a source
    that changes in every attempt does not cause calls of the model without a pause.
    """
    wait = "least(greatest($6::timestamptz - first_due_at, '1 second'), '1 minute')"
    assignment = f"""lease = NULL, leased_until = NULL, attempts = 0, error = NULL, transient = false,
        refusals = '[]', progress = NULL, first_due_at = $6::timestamptz - {wait},
        run_after = CASE WHEN run_after = 'infinity' THEN run_after ELSE $6::timestamptz + {wait} END"""
    return await _update(db_session, claimed, assignment, now)


async def put_off(db_session: DbSession, claimed: Claimed, *, now: datetime) -> float:
    """Release an item whose attempt raised Unavailable (`kit/errors.py`); return the seconds until it is due.

    The attempt is not counted. The delay is the time for which the item has been due so far, at least 1 and at most 8
    seconds. Returns 0 if the lease is no longer held.

    The delay is stored as a new lease that no worker holds, so the API shows the item as `running` meanwhile. A change
    of `run_after` would need the lock of the item's line, which another transaction may hold for long.
    """
    owner = claimed.owner
    wait_s = await db_session.raw.fetchval(
        f"""
        UPDATE work SET attempts = greatest(attempts - 1, 0), lease = gen_random_uuid(),
            leased_until = clock_timestamp() + least(greatest($6 - first_due_at, '1 second'), '8 seconds')
        WHERE {_IF_LEASED}
        RETURNING extract(epoch FROM leased_until - clock_timestamp())
        """,  # noqa: S608 - composed of constants
        *(owner.key, owner.line_id, claimed.layer, claimed.key, claimed.lease),
        now,
    )
    return max(0.0, float(wait_s or 0))


async def _update(db_session: DbSession, claimed: Claimed, assignment: str, value: str | datetime) -> bool:
    owner = claimed.owner
    item = (owner.key, owner.line_id, claimed.layer, claimed.key, claimed.lease)
    status = await db_session.raw.execute(f"UPDATE work SET {assignment} WHERE {_IF_LEASED}", *item, value)  # noqa: S608
    return status == "UPDATE 1"
