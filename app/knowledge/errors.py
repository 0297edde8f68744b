"""The errors of statements."""

from app.kit.errors import Conflict, NotFound


class UserNotFound(NotFound):
    """The caller's token is limited to another user, or to one chat."""

    code = "user_not_found"
    title = "Unknown user"


class TooManyKeys(Conflict):
    """The scope has the maximum number of keys."""

    code = "too_many_keys"
    title = "Too many keys"
