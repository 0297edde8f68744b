"""The job behind auto-hide: one look at all scenes, one statement for all messages that it hides or shows again."""

from app.chats.service import hide_by_scenes, lock_line
from app.kit.due import Claimed, finish, holds_lease
from app.kit.workbench import Workbench
from app.scenes import queries
from app.scenes.folding import read_standing
from app.scenes.hiding import choose_hidden, find_rest
from app.scenes.work import hides


async def hide_scenes(bench: Workbench, claimed: Claimed) -> bool:
    """Hide what the settings and the running recap say, show the rest; asks no model."""
    async with bench.database.unit_of_work() as db_session:
        head = await lock_line(db_session, claimed.chat_key, claimed.line_id)
        if head is None or not await holds_lease(db_session, claimed):
            return False
        await finish(db_session, claimed)
        scenes = await queries.list_closed(db_session, head)
        last_break = scenes[-1][1] if scenes else 0
        hidden = choose_hidden(
            scenes,
            has_open=await queries.has_message_after(db_session, head, last_break),
            keep=head.settings.scenes.auto_hide if hides(head) else None,
            covered_seq=(await read_standing(db_session, head)).covered_seq,
        )
        await hide_by_scenes(db_session, head, hidden, find_rest(hidden, head.head_seq), now=bench.clock())
    return False
