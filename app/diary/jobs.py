"""The job of the diaries' due work: its key says what is to be done."""

from uuid import UUID

from app.diary.entry_job import rewrite_entry, write_entry
from app.diary.fold_job import make_fold
from app.diary.layer import ENTRY, FOLD, WRITE
from app.kit.due import Claimed
from app.kit.workbench import Workbench


async def make_diary(bench: Workbench, claimed: Claimed) -> bool:
    """Fold a diary, or write an entry of it; says whether a model answered. Raises ModelError."""
    if claimed.key.startswith(FOLD):
        return await make_fold(bench, claimed, claimed.key.removeprefix(FOLD))
    if claimed.key.startswith(ENTRY):
        return await rewrite_entry(bench, claimed, UUID(claimed.key.removeprefix(ENTRY)))
    _, _, character = claimed.key.removeprefix(WRITE).partition(":")
    return await write_entry(bench, claimed, character)
