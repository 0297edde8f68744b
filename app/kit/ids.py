"""Identifiers: time-ordered UUIDs, and the keys of chats, users and tenants in the database."""

import hashlib
import os
import threading
import time
from functools import lru_cache
from uuid import UUID

_lock = threading.Lock()
_last_ms = 0
_sequence = 0


def uuid7() -> UUID:
    """Return a UUIDv7 (RFC 9562): 48 bits of milliseconds, a 12-bit counter, 62 random bits.

    Ids of one process are strictly increasing, even within a millisecond and when the clock steps back.
    """
    global _last_ms, _sequence
    with _lock:
        now_ms = time.time_ns() // 1_000_000
        if now_ms > _last_ms:
            _last_ms, _sequence = now_ms, int.from_bytes(os.urandom(2)) & 0x3FF
        else:
            _sequence += 1
            if _sequence > 0xFFF:
                _last_ms, _sequence = _last_ms + 1, 0
        head = (_last_ms & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | _sequence << 64
    return UUID(int=head | 0b10 << 62 | int.from_bytes(os.urandom(8)) >> 2)


def chat_key(tenant: str, chat_id: str) -> UUID:
    """Return the key of a chat: the first 16 bytes of sha-256(tenant ‖ 0 ‖ chat_id). No lookup is needed."""
    return _key(tenant, chat_id)


def user_key(tenant: str, user_id: str) -> UUID:
    """Return the key of a tenant's user, computed like `chat_key`."""
    return _key(tenant, user_id)


@lru_cache(maxsize=1_024)
def tenant_key(tenant: str) -> UUID:
    """Return the key of a tenant, computed like `chat_key` with an empty id, which no chat or user has."""
    return _key(tenant, "")


def _key(tenant: str, name: str) -> UUID:
    return UUID(bytes=hashlib.sha256(f"{tenant}\0{name}".encode()).digest()[:16])
