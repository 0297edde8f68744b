"""What people wrote of a scene that is none any more, handed on to another one."""

from app.kit.tokens import count_tokens
from app.scenes.models import Scene


def hand_on(there: Scene, here: Scene) -> None:
    """Give `here` the title and recap that a person gave `there`; what a person wrote of it before stands ahead.

    The recap is as stale as it was, or as the one ahead of it.
    """
    if there.titled and not here.titled:
        here.title, here.titled = there.title, True
    if not there.is_written:
        return
    if here.is_written:
        here.recap = f"{here.recap}\n\n{there.recap}"
    else:
        here.recap, here.source_hash = there.recap, there.source_hash
    here.tokens = count_tokens(here.recap)
    here.status, here.origin, here.edited = there.status, there.origin, here.edited or there.edited
