"""Where the API listens."""

import random
import socket
from collections.abc import Sequence
from contextlib import suppress

from app.local.errors import LocalError

# Where systems give no ports to connections and to servers that do not mind which: until the API listens, and
# again while it is started anew, one from there could become somebody else's.
_UNASKED = range(20_000, 30_000)
_TRIES = 20

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def free_port(host: str, port: int, *, among: Sequence[int] = _UNASKED) -> int:
    """The port, if the API can listen there now; for 0 one that is free, if it can be of `among`. Raises LocalError."""
    if port == 0:
        for chosen in random.sample(among, min(_TRIES, len(among))):
            with suppress(LocalError):
                return _probe(host, chosen)
    return _probe(host, port)


def _probe(host: str, port: int) -> int:
    """The port that could be listened on just now, for 0 any."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As uvicorn does: connections of a former run that linger in TIME_WAIT do not matter.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Only here, because the lookup wraps a port that is too large.
            probe.bind((address[0], port, *address[2:]))
            probe.listen()
            return int(probe.getsockname()[1])
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LocalError(f"cannot listen on port {port} of {host}: {reason} (--port chooses another)") from None


def url_of(host: str, port: int) -> str:
    """The API's URL as this machine reaches it."""
    host = _ANYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
