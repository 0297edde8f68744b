"""Hashes that detect whether the source of a derived text has changed. Pure."""

import hashlib
from collections.abc import Iterable

DIGEST_BYTES = 16


def identity(role: str, content: str) -> bytes:
    """Return the hash of the role and the content of a message as first appended, by which a retry is recognised.

    For a call of a tool, `role` is a fixed word, such as `block`, and `content` identifies the call's arguments.
    """
    return _digest(role, content)


def content_digest(role: str, name: str | None, content: str) -> bytes:
    """Return the hash of what a summary uses of a message; it changes when the text or the speaker does."""
    return _digest(role, name or "", content)


def range_hash(members: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the hash of a range: `members` are (seq, content digest) of its eligible messages, in order."""
    whole = hashlib.sha256()
    for seq, digest in members:
        whole.update(seq.to_bytes(8))
        whole.update(digest)
    return whole.digest()[:DIGEST_BYTES]


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()[:DIGEST_BYTES]
