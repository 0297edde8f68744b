"""What makes the due work of scenes: one job for each kind of key."""

from collections.abc import Awaitable, Callable, Mapping

from app.kit.due import Claimed
from app.kit.workbench import Workbench
from app.scenes.detect_job import detect_break
from app.scenes.hide_job import hide_scenes
from app.scenes.recap_job import fold_recap
from app.scenes.scene_job import make_scene_recap
from app.scenes.work import DETECT, FOLD, HIDE

_JOBS: Mapping[str, Callable[[Workbench, Claimed], Awaitable[bool]]] = {
    DETECT: detect_break,
    FOLD: fold_recap,
    HIDE: hide_scenes,
}


async def make_scene_work(bench: Workbench, claimed: Claimed) -> bool:
    """Make what `claimed` asks for; says whether a model answered. Raises ModelError."""
    return await _JOBS.get(claimed.key, make_scene_recap)(bench, claimed)
