"""The address of the API."""

import random
import socket
from collections.abc import Sequence
from contextlib import suppress

from app.local.errors import LocalError

# These ports are outside the ranges from which systems assign ports automatically. A port from such a range could be
# taken by another process before the API listens on it, or while the API restarts.
_UNASKED = range(20_000, 30_000)
_TRIES = 20

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def free_port(host: str, port: int, *, among: Sequence[int] = _UNASKED) -> int:
    """Return `port` if the API can listen on it. For 0, return a free port, preferably from `among`.

    Raises LocalError if the port cannot be used.
    """
    if port == 0:
        for chosen in random.sample(among, min(_TRIES, len(among))):
            with suppress(LocalError):
                return _probe(host, chosen)
    return _probe(host, port)


def _probe(host: str, port: int) -> int:
    """Return `port` after listening on it briefly; for 0, return a port that the system chose. Raises LocalError."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As uvicorn does, so that connections of an earlier run in TIME_WAIT do not block the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # The port is not passed to the lookup, which wraps a port that is too large.
            probe.bind((address[0], port, *address[2:]))
            probe.listen()
            return int(probe.getsockname()[1])
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LocalError(f"cannot listen on port {port} of {host}: {reason} (choose another with --port)") from None


def url_of(host: str, port: int) -> str:
    """Return the URL of the API for clients on this machine."""
    host = _ANYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
