"""HTTP/1.1 that withstands hostile clients: uvicorn's protocol with limits of size and time for each connection.

uvicorn's protocol for httptools accepts heads and trailers of any length, waits for requests and readers forever, and
accepts any number of connections. The limits are in `app.web.connections`; ADR 0027 has the reasons.

A *head* is the request line and the headers of a request. *Overhead* is what is not body: head, trailers, chunk sizes.
"""

import asyncio
import logging
from enum import Enum
from functools import partial
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.kit.errors import AppError
from app.web.connections import KIB, ConnectionLimits, ConnectionTable, Waiting
from app.web.errors import HeadTooLarge, MalformedRequest, RequestTimeout, ServerFull, UrlTooLong
from app.web.refusal import write_refusal
from app.web.upgrades import hide_upgrade

log = logging.getLogger(__name__)

PART_BYTES = 16 * KIB
"""The parser gets at most this many bytes at once. It reports a header only when the header is complete, so the size of
an incomplete one can be checked only between two parts."""

PAUSE_S = 0.01
"""The time between two reads of bytes that are dropped."""


class Phase(Enum):
    """The part of a request that a connection is reading."""

    BETWEEN = "between requests"
    HEAD = "head"
    BODY = "body"


def bounded_protocol(limits: ConnectionLimits) -> type["BoundedProtocol"]:
    """Return the function that uvicorn's `http` option calls for each connection.

    All connections of a process share one table. The function can be pickled, so that uvicorn can start several
    processes; each of them gets a table of its own.
    """
    return cast("type[BoundedProtocol]", partial(BoundedProtocol, limits=limits, table=ConnectionTable()))


class BoundedProtocol(HttpToolsProtocol):
    """One connection.

    It is *served* from the end of a head to the end of the answer. At other times, and while the client does not read
    the answer, it is in the table of connections that can be closed when there are too many.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
        table: ConnectionTable["BoundedProtocol"],
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self.table = table
        self._phase = Phase.BETWEEN
        self._requests_begun = self._requests_read = 0
        self._refused = False
        self._fields = self._head_bytes = self._overhead_bytes = self._body_bytes = self._dropped_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._deadline_of: tuple[Phase, int] | None = None
        self._reader_deadline: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._waits_in: Waiting[BoundedProtocol] | None = None

    # --- the connection ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Set the deadline for the first head. If there are too many connections, close one, or refuse this one."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            victim = self.table.next_victim()
            if victim is None:
                self._refuse(ServerFull("All connections are in use."))
                return
            victim.give_up()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadlines."""
        self._stop_waiting()
        self._cancel_deadline()
        self._cancel_reader_deadline()
        self._refused = True
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def eof_received(self) -> None:
        """Let uvicorn close the connection; abort it if the client does not read the rest of the answer in time."""
        super().eof_received()
        self._set_reader_deadline()

    def give_up(self) -> None:
        """Close the connection at once, without an answer."""
        log.debug("closed a connection to make room")
        self._refused = True
        self._stop_waiting()
        self.transport.abort()

    # --- reading ----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse `data`, and refuse the request if it exceeds a limit."""
        if self._refused:
            self._drop(len(data))
            return
        self._unset_keepalive_if_required()
        try:
            if len(data) <= PART_BYTES:
                self._parse(data)
            else:
                whole = memoryview(data)
                for start in range(0, len(data), PART_BYTES):
                    self._parse(whole[start : start + PART_BYTES])
        except httptools.HttpParserUpgrade:
            # CONNECT, or an `Upgrade` that `hide_upgrade` did not find. The request is answered as if it had not asked
            # for another protocol. The bytes after it are not HTTP.
            self._end_after_answer()
        except httptools.HttpParserError as error:
            # No variable here may refer to the error that `_refusal_in` returns: the traceback of that error refers to
            # this frame, so `data` would be kept until the next garbage collection.
            self._refuse(_refusal_in(error))
        except HeadTooLarge as error:
            self._refuse(error)
        if not self._refused:
            self._watch()
            if self._phase is Phase.BODY and self.cycle.response_complete:
                self._read_later()

    def _parse(self, part: bytes | memoryview) -> None:
        """Parse a part and count what is not body. Raises HttpParserError, HttpParserUpgrade or HeadTooLarge."""
        if self._phase is Phase.BETWEEN:
            self._phase, self._overhead_bytes, expected = Phase.HEAD, 0, 1
        else:
            expected = 0
        begun, self._body_bytes = self._requests_begun, 0
        self.parser.feed_data(hide_upgrade(bytes(part)) if self._phase is Phase.HEAD else part)
        if self._requests_begun - begun > expected:
            # A new request began in this part. It is unknown which bytes of the part belong to it, so none are counted.
            self._overhead_bytes = 0
        else:
            self._overhead_bytes += len(part) - self._body_bytes
        if self._overhead_bytes > self.limits.overhead_bytes and self._phase is not Phase.BETWEEN:
            raise self._too_large()

    def on_message_begin(self) -> None:
        """Begin to count a head."""
        super().on_message_begin()
        self._phase = Phase.HEAD
        self._requests_begun += 1
        self._fields = self._head_bytes = self._dropped_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Collect the URL. Raises UrlTooLong."""
        super().on_url(url)
        self._head_bytes += len(url)
        if len(self.url) > self.limits.url_bytes:
            raise UrlTooLong(f"The URL must have at most {self.limits.url_bytes} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header and drop a trailer. Raises HeadTooLarge."""
        if self._phase is Phase.BODY:
            return
        self._fields += 1
        self._head_bytes += len(name) + len(value) + 4
        if self._fields > self.limits.fields:
            raise HeadTooLarge(f"A request must have at most {self.limits.fields} header fields.")
        if self._head_bytes > self.limits.overhead_bytes:
            raise self._too_large()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Serve the request. Raises MalformedRequest if too many requests wait on this connection."""
        if len(self.pipeline) >= self.limits.pipelined:
            raise MalformedRequest(f"At most {self.limits.pipelined} requests may wait on a connection.")
        super().on_headers_complete()
        self._phase = Phase.BODY

    def on_body(self, body: bytes) -> None:
        """Collect a part of the body, or drop it after the answer. Raises MalformedRequest if it drops too much."""
        self._body_bytes += len(body)
        if self.cycle.response_complete:
            self._dropped_bytes += len(body)
            if self._dropped_bytes > self.limits.discarded_bytes:
                raise MalformedRequest("The body goes on after the answer.")
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        super().on_message_complete()
        self._phase = Phase.BETWEEN
        self._requests_read += 1

    def _too_large(self) -> HeadTooLarge:
        return HeadTooLarge(f"A request must have at most {self.limits.overhead_bytes} bytes besides its body.")

    def _drop(self, size: int) -> None:
        """Drop bytes that arrive after a refusal. An immediate close would make the client lose the answer."""
        self._dropped_bytes += size
        if self._dropped_bytes > self.limits.lingering_bytes:
            self.transport.abort()
        else:
            self._read_later()

    def _read_later(self) -> None:
        """Pause for a moment, so that a client whose bytes are dropped cannot keep the event loop busy."""
        self.flow.pause_reading()
        self.loop.call_later(PAUSE_S, self._read_on)

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()

    # --- answering --------------------------------------------------------------------------------

    @property
    def _is_served(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to read the last answer."""
        super().on_response_complete()
        if not self._is_served:
            # Free what the application did not read: the request may stay in memory until a garbage collection.
            self.cycle.body.clear()
        if self.transport.is_closing():
            self._set_reader_deadline()
        elif not self._refused:
            self._sort()

    def pause_writing(self) -> None:
        """Set the deadline for the client to read the answer."""
        super().pause_writing()
        self._sort()
        self._set_reader_deadline()
        if self.table.stalled.total_bytes > self.limits.unread_answers_bytes:
            self.loop.call_later(self.limits.stalled_s, self._give_up_unread_answers)

    def _give_up_unread_answers(self) -> None:
        """Close the connections that have not read for longest, until the unread answers are within their budget."""
        stalled = self.table.stalled
        while stalled.total_bytes > self.limits.unread_answers_bytes:
            victim = stalled.oldest(self.loop.time() - self.limits.stalled_s)
            if victim is None:
                break
            victim.give_up()

    def resume_writing(self) -> None:
        """Cancel the deadline for the client to read the answer."""
        super().resume_writing()
        self._cancel_reader_deadline()
        self._sort()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        super().timeout_keep_alive_handler()
        self._set_reader_deadline()

    def _refuse(self, error: AppError) -> None:
        """Close with `error` as the answer, or without one if an earlier request is served or an answer has begun."""
        log.debug("refused a connection: %s", error.code)
        cycle, in_body = self.cycle, self._phase is Phase.BODY
        if not in_body and self._is_served:
            self._end_after_answer()
            return
        self._refused = True
        self._cancel_deadline()
        if in_body and (cycle.response_started or self.pipeline):
            self._stop_waiting()
            self.transport.abort()
            return
        if in_body:  # the application reads that the client is gone, and its answer is dropped
            cycle.disconnected = True
            cycle.message_event.set()
        path = self.scope["path"] if in_body else ""
        self.transport.write(write_refusal(error, path, self.server_state.default_headers))
        self._linger()

    def _end_after_answer(self) -> None:
        """Read nothing more, and close once the requests that were read are answered."""
        self._refused = True
        self._cancel_deadline()
        self._sort()
        self.cycle.keep_alive = False
        self.flow.pause_reading()

    def _linger(self) -> None:
        """Close once the client has had time to read the answer."""
        self._unset_keepalive_if_required()
        self._dropped_bytes = 0
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._wait_in(self.table.unfinished)
        self._deadline = self.loop.call_later(self.limits.linger_s, self.transport.abort)

    # --- deadlines --------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Set the deadline for the part of a request that is being read, and update the table of connections."""
        phase = Phase.HEAD if self._requests_begun == 0 else self._phase
        if phase is Phase.BETWEEN:
            self._cancel_deadline()
            if not self._is_served and self.timeout_keep_alive_task is None:  # the body ended after the answer
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
        elif self._deadline_of != (phase, self._requests_read):
            self._cancel_deadline()
            seconds = self.limits.head_s if phase is Phase.HEAD else self.limits.body_s
            self._deadline_of = (phase, self._requests_read)
            self._deadline = self.loop.call_later(seconds, self._deadline_passed)
        self._sort()

    def _deadline_passed(self) -> None:
        if self._phase is Phase.BODY and self.flow.read_paused:  # the service itself is slow
            self._deadline_of = None
            self._watch()
        elif self._phase is Phase.BODY:
            self._refuse(RequestTimeout(f"The body must arrive within {self.limits.body_s:g} seconds."))
        elif self._phase is Phase.HEAD:
            self._refuse(RequestTimeout(f"The headers must arrive within {self.limits.head_s:g} seconds."))
        else:  # browsers open connections in advance, and would take a 408 for the answer to their next request
            self.transport.close()

    def _cancel_deadline(self) -> None:
        self._deadline_of = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _set_reader_deadline(self) -> None:
        self._cancel_reader_deadline()
        self._unread_bytes = self.transport.get_write_buffer_size()
        if self._unread_bytes > 0:
            self._reader_deadline = self.loop.call_later(self.limits.write_s, self._reader_deadline_passed)

    def _reader_deadline_passed(self) -> None:
        """Close the connection unless the client goes on reading."""
        if self._unread_bytes - self.transport.get_write_buffer_size() >= self.limits.min_read_bytes:
            self._set_reader_deadline()
        else:
            self.transport.abort()

    def _cancel_reader_deadline(self) -> None:
        if self._reader_deadline is not None:
            self._reader_deadline.cancel()
            self._reader_deadline = None

    # --- which connections can be given up --------------------------------------------------------

    def _sort(self) -> None:
        """Note in the table what the connection waits for."""
        if self.flow.write_paused:
            self._wait_in(self.table.stalled, self.transport.get_write_buffer_size())
        elif self._is_served:
            self._stop_waiting()
        elif self._phase is Phase.HEAD or self.cycle is None:
            self._wait_in(self.table.unfinished, self._overhead_bytes)
            if self.table.unfinished.total_bytes > self.limits.unfinished_heads_bytes:
                victim = self.table.unfinished.oldest()
                assert victim is not None
                victim.give_up()
        else:
            self._wait_in(self.table.idle)

    def _wait_in(self, waiting: Waiting["BoundedProtocol"], size_bytes: int = 0) -> None:
        if self._waits_in is not waiting:
            self._stop_waiting()
            self._waits_in = waiting
        waiting.add(self, self.loop.time(), size_bytes)

    def _stop_waiting(self) -> None:
        if self._waits_in is not None:
            self._waits_in.remove(self)
            self._waits_in = None


def _refusal_in(error: httptools.HttpParserError) -> AppError:
    """Return the error that a callback has raised, or one for bytes that the parser itself refuses."""
    cause = error.__context__
    return cause if isinstance(cause, AppError) else MalformedRequest("The request is not valid HTTP.")
