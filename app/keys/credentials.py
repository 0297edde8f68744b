"""The text of a key, `mb_<id>_<secret>`: the id finds its row, the hash of the whole proves it.

Both parts are hexadecimal, so the separator is in neither and a double click selects the whole. The secret
has 256 random bits: nobody guesses it, which is why a fast hash without salt is enough.
"""

import hashlib
import re
import secrets

KEY_ID_PATTERN = r"^[0-9a-f]{12}$"

_KEY = re.compile(r"mb_([0-9a-f]{12})_[0-9a-f]{64}")


def new_key_id() -> str:
    """The id of a key to be made; 12 hexadecimal digits."""
    return secrets.token_hex(6)


def new_key_text(key_id: str) -> str:
    """A key under `key_id` with a fresh secret."""
    return f"mb_{key_id}_{secrets.token_hex(32)}"


def key_id_in(text: str) -> str | None:
    """The id that `text` names if it has the form of a key."""
    found = _KEY.fullmatch(text)
    return found[1] if found else None


def hash_of(text: str) -> bytes:
    """The sha-256 of a key, which is all that is kept of it."""
    return hashlib.sha256(text.encode()).digest()
