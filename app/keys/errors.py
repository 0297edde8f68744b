"""What can be wrong with a key, or with a request that has none."""

from app.kit.auth import Forbidden
from app.kit.errors import Conflict, NotFound


class KeyNotFound(NotFound):
    """There is no such key, or it has been revoked."""

    code = "key_not_found"
    title = "Unknown key"


class FirstKeyNotAdmin(Conflict):
    """The first key closes the service to whoever has none, so it must be able to make the next."""

    code = "first_key_not_admin"
    title = "The first key must be an admin's"


class LoopbackOnly(Forbidden):
    """While no key exists only this machine is served, and this request may come from elsewhere."""

    code = "loopback_only"
    title = "Only from this machine"
