"""What can be wrong with a request about scenes."""

from app.kit.errors import Conflict, NotFound


class SceneNotFound(NotFound):
    """There is no such scene, or its break was lifted."""

    code = "scene_not_found"
    title = "Unknown scene"


class BreakNotFound(NotFound):
    """No scene ends on this message."""

    code = "break_not_found"
    title = "Unknown break"


class SceneEdited(Conflict):
    """A person wrote its recap: a model rewrites it only if asked to."""

    code = "scene_edited"
    title = "Scene was edited by a person"


class ScenesOff(Conflict):
    """The chat's settings have scenes switched off: nothing is told of them."""

    code = "scenes_off"
    title = "Scenes are switched off"
