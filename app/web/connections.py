"""Limits of HTTP connections, and the order in which connections are closed when there are too many. Pure."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

KIB = 1024
MIB = 1024 * KIB

Connection = TypeVar("Connection")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits of one connection, and of all connections together.

    Attributes:
        max_connections: Open connections. If there are more, one is closed to make room: the one whose request line and
            headers have been incomplete longest; else the one that has been idle longest; else the one whose client has
            not read its answer for longest. If there is none of these, the new connection gets a 503.
        head_s: Seconds for the request line and the headers, counted from the first byte of the request. For the first
            request of a connection, they are counted from the opening of the connection.
        body_s: Seconds for a body, from the end of the headers.
        write_s: Seconds in which a client must read at least `min_read_bytes` of an answer that waits to be sent; a
            slower client is disconnected.
        overhead_bytes: Bytes of a request that are not its body: request line, headers, trailers, sizes of chunks.
        url_bytes: Bytes of the URL.
        fields: Header fields.
        pipelined: Requests that wait on one connection for the answers to earlier ones.
        discarded_bytes: Bytes of a body that are read after the request was answered.
        linger_s: Seconds in which a client can read a refusal before its connection is closed.
        lingering_bytes: Bytes that are read and dropped after a refusal.
        min_read_bytes: See `write_s`.
        stalled_s: Seconds after which a connection whose client does not read its answer may be closed to free memory.
        unfinished_heads_bytes: Bytes of incomplete request lines and headers on all connections together.
        unread_answers_bytes: Bytes of unread answers on all connections together.

    """

    max_connections: int = 1_000
    head_s: float = 10.0
    body_s: float = 60.0
    write_s: float = 30.0
    overhead_bytes: int = 64 * KIB
    url_bytes: int = 16 * KIB
    fields: int = 100
    pipelined: int = 16
    discarded_bytes: int = 8 * MIB
    linger_s: float = 2.0
    lingering_bytes: int = 256 * KIB
    min_read_bytes: int = 64 * KIB
    stalled_s: float = 0.5
    unfinished_heads_bytes: int = 12 * MIB
    unread_answers_bytes: int = 16 * MIB


class Waiting(Generic[Connection]):
    """Connections in the order in which they began to wait.

    Attributes:
        total_bytes: The bytes that they hold together.

    """

    def __init__(self) -> None:
        self.total_bytes = 0
        self._entries: OrderedDict[Connection, tuple[float, int]] = OrderedDict()

    def add(self, connection: Connection, now_s: float, size_bytes: int = 0) -> None:
        """Add a connection that holds `size_bytes`. If it waits already, it keeps its place and time."""
        since_s, former_bytes = self._entries.get(connection, (now_s, 0))
        self._entries[connection] = (since_s, size_bytes)
        self.total_bytes += size_bytes - former_bytes

    def remove(self, connection: Connection) -> None:
        """Remove a connection. Raises KeyError if it does not wait here."""
        _, size_bytes = self._entries.pop(connection)
        self.total_bytes -= size_bytes

    def oldest(self, until_s: float = float("inf")) -> Connection | None:
        """Return the connection that has waited longest, or None if none began to wait at or before `until_s`."""
        connection, (since_s, _) = next(iter(self._entries.items()), (None, (0.0, 0)))
        return connection if since_s <= until_s else None


class ConnectionTable(Generic[Connection]):
    """The connections that can be closed when there are too many.

    A connection on which a request is being served is not among them, unless its client does not read the answer.

    Attributes:
        unfinished: Those whose request line and headers are incomplete, or whose last request was refused.
        idle: Those that were answered and may send another request.
        stalled: Those whose client does not read the answer.

    """

    def __init__(self) -> None:
        self.unfinished = Waiting[Connection]()
        self.idle = Waiting[Connection]()
        self.stalled = Waiting[Connection]()

    def next_victim(self) -> Connection | None:
        """Return the connection to close first, or None if there is none that can be closed."""
        return self.unfinished.oldest() or self.idle.oldest() or self.stalled.oldest()
