"""The text of a key, `mb_<id>_<secret>`: the id finds its row, the hash of the whole text verifies it.

Both parts are hexadecimal, so neither contains the separator and a double click selects the whole key. The secret has
256 random bits and cannot be guessed, so a fast hash without salt is sufficient.
"""

import hashlib
import re
import secrets

KEY_ID_PATTERN = r"^[0-9a-f]{12}$"

_KEY = re.compile(r"mb_([0-9a-f]{12})_[0-9a-f]{64}")


def new_key_id() -> str:
    """Return a random id for a new key: 12 hexadecimal digits."""
    return secrets.token_hex(6)


def new_key_text(key_id: str) -> str:
    """Return the text of a new key with the id `key_id` and a random secret."""
    return f"mb_{key_id}_{secrets.token_hex(32)}"


def key_id_in(text: str) -> str | None:
    """Return the id in `text` if it has the form of a key, or None."""
    found = _KEY.fullmatch(text)
    return found[1] if found else None


def hash_of(text: str) -> bytes:
    """Return the SHA-256 of a key. Only the hash is stored."""
    return hashlib.sha256(text.encode()).digest()
