"""Errors of scenes."""

from app.kit.errors import Conflict, NotFound


class SceneNotFound(NotFound):
    """There is no such scene, or its break was removed."""

    code = "scene_not_found"
    title = "Unknown scene"


class BreakNotFound(NotFound):
    """No scene ends on this message."""

    code = "break_not_found"
    title = "Unknown break"


class SceneEdited(Conflict):
    """A person wrote the scene's recap, and the request does not allow replacing it."""

    code = "scene_edited"
    title = "Scene was edited by a person"


class ScenesOff(Conflict):
    """Scenes are switched off in the chat's settings, so their recap cannot be rebuilt."""

    code = "scenes_off"
    title = "Scenes are switched off"
