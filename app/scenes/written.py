"""Copies what people wrote about a scene that no longer exists to another scene."""

from app.kit.tokens import count_tokens
from app.scenes.models import Scene


def hand_on(there: Scene, here: Scene) -> None:
    """Copy the title and the recap that a person wrote from `there` to `here`.

    If a person wrote the recap of `here` too, the copied one is appended to it. Otherwise it replaces the recap of
    `here`, and the `source_hash` is copied too. A title that a person gave `here` stays.
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
