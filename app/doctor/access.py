"""The check of the keys."""

from app.doctor.finding import Finding
from app.keys.service import has_admin, is_sendable
from app.kit.db import Connection
from app.kit.settings import Settings


async def check_keys(connection: Connection, settings: Settings, *, is_public: bool) -> Finding:
    """Check that the service requires a key if it is reachable from elsewhere, and that an admin key exists."""
    if settings.admin_key is not None:
        if is_sendable(settings.admin_key.get_secret_value()):
            return Finding("keys", "ok", "MEMOBOOK_ADMIN_KEY is set; every request needs a key.")
        return Finding(
            "keys",
            "fault",
            "MEMOBOOK_ADMIN_KEY is too short or cannot be sent in a header.",
            "Use at least 32 printable ASCII characters without spaces: openssl rand -hex 32",
        )
    has = await has_admin(connection)
    if has is None:
        if is_public:
            return Finding(
                "keys",
                "fault",
                "There is no key, and the API is to listen on a public address.",
                "Set MEMOBOOK_ADMIN_KEY, or run memobook keys create.",
            )
        return Finding("keys", "note", "There is no key: the API trusts every request from its own machine.")
    if has:
        return Finding("keys", "ok", "Every request needs a key.")
    return Finding(
        "keys",
        "note",
        "No key with the scope admin is valid.",
        "To create keys over HTTP and to read the metrics, run memobook keys create --scopes read,write,admin.",
    )
