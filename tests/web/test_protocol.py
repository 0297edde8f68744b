"""Hostile clients are refused, and others are served meanwhile."""

import asyncio
import gc

import pytest

from app.web.connections import ConnectionLimits
from app.web.protocol import BoundedProtocol
from tests.slowness import SLOWNESS
from tests.web.serving import BIG_BYTES, Client, get, post, serving

KIB = 1024
CHUNKED = "Transfer-Encoding: chunked"


async def flood(client: Client, piece: bytes, most: int) -> tuple[int, bytes]:
    """Send a piece again and again until the server closes; return how many bytes were sent, and the answer."""
    answer = asyncio.create_task(client.rest())
    sent = 0
    while sent < most and not answer.done():
        await client.send(piece)
        sent += len(piece)
        await asyncio.sleep(0)
    return sent, await answer


async def test_usual_requests_are_served_one_after_another() -> None:
    async with serving() as served:
        client = await served.connect()
        for _ in range(3):
            await client.send(get("/"))
            answer = await client.answer()
            assert (answer.status, answer.body) == (200, b"0")
        await client.send(post("/", "Content-Length: 3") + b"abc")
        assert (await client.answer()).body == b"3"
        await client.send(get("/a") + get("/b") + post("/c", CHUNKED) + b"1\r\nx\r\n0\r\n\r\n" + get("/d"))
        assert [(await client.answer()).body for _ in range(4)] == [b"0", b"0", b"1", b"0"]
        assert [path for path, _ in served.requests[-4:]] == ["/a", "/b", "/c", "/d"]


@pytest.mark.parametrize(
    ("start", "piece", "status"),
    [
        (b"GET /", b"a", 414),
        (b"GET / HTTP/1.1\r\n", b"a", 431),
        (b"GET / HTTP/1.1\r\nA: ", b"a", 431),
        (b"GET / HTTP/1.1\r\nA: b\r\n", b"A: b\r\n", 431),
        (b"", b"\r\n", 431),
    ],
    ids=["url", "name", "value", "fields", "lines"],
)
async def test_an_endless_head_is_refused(start: bytes, piece: bytes, status: int) -> None:
    async with serving(lingering_bytes=64 * 1024 * KIB) as served:
        client = await served.connect()
        await client.send(start)
        sent, answer = await flood(client, piece * 1_000, 64 * 1024 * KIB)
        assert sent < 16 * 1024 * KIB  # with what the buffers of the system hold
        assert answer.startswith(b"HTTP/1.1 %d" % status)
        await served.closed()
        assert served.requests == []


async def test_a_refused_client_that_goes_on_is_cut_off() -> None:
    async with serving(linger_s=3_600) as served:
        client = await served.connect()
        await client.send(b"junk\r\n")
        assert (await client.answer()).status == 400
        sent = 0
        while not client.writer.transport.is_closing() and sent < 64 * 1024 * KIB:
            await client.send(b"x" * 16 * KIB)
            sent += 16 * KIB
        assert sent < 64 * 1024 * KIB
        await served.closed()


@pytest.mark.parametrize(
    ("most", "over", "status"),
    [
        (get("/" + "a" * (16 * KIB - 1)), get("/" + "a" * 16 * KIB), 414),
        (get("/", *["A: b"] * 99), get("/", *["A: b"] * 100), 431),
        (get("/", "A: " + "b" * 63 * KIB), get("/", "A: " + "b" * 64 * KIB), 431),
    ],
    ids=["url", "fields", "bytes"],
)
async def test_a_head_has_limits(most: bytes, over: bytes, status: int) -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(most)
        assert (await client.answer()).status == 200
        await client.send(over)
        answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert answer.problem.keys() == {"type", "title", "status", "detail", "code", "instance"}
        assert answer.problem["status"] == status
        assert await client.rest() == b""
        assert len(served.requests) == 1


async def test_limits_hold_for_every_request_of_a_connection() -> None:
    async with serving() as served:
        client = await served.connect()
        for _ in range(5):
            await client.send(get("/", "A: " + "b" * 40 * KIB))
            assert (await client.answer()).status == 200
        await client.send(get("/", "A: " + "b" * 40 * KIB) * 5)
        assert [(await client.answer()).status for _ in range(5)] == [200] * 5


async def test_trailers_are_dropped_and_counted() -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(post("/", CHUNKED) + b"1\r\nx\r\n0\r\nAuthorization: Bearer x\r\n\r\n")
        assert (await client.answer()).body == b"1"
        assert b"authorization" not in dict(served.headers)
        await client.send(post("/", CHUNKED) + b"1\r\nx\r\n0\r\n")
        _, answer = await flood(client, b"A: b\r\n" * 100, 1024 * KIB)
        assert answer.startswith(b"HTTP/1.1 431")
        await served.until(lambda: served.gone == 1)


@pytest.mark.parametrize("chunk", [b"1;a=" + b"b" * 1_000 + b"\r\nx\r\n", b"1\r\nx\r\n"], ids=["extension", "tiny"])
async def test_chunks_that_are_mostly_overhead_are_refused(chunk: bytes) -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(post("/", CHUNKED))
        _, answer = await flood(client, chunk * 100, 1024 * KIB)
        assert answer.startswith(b"HTTP/1.1 431")


async def test_a_large_body_in_usual_chunks_is_served() -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(post("/", CHUNKED))
        await client.send((b"%x\r\n" % (8 * KIB) + b"x" * 8 * KIB + b"\r\n") * KIB + b"0\r\n\r\n")
        assert (await client.answer()).body == b"%d" % (8 * KIB * KIB)
        await client.send(post("/", f"Content-Length: {8 * KIB * KIB}") + b"x" * 8 * KIB * KIB)
        assert (await client.answer()).body == b"%d" % (8 * KIB * KIB)


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01\x02\x00", b"GET / HTTP/3.7\r\n\r\n", b"SSH-2.0-x\r\n", b"GET / HTTP/1.1\r\nA B\r\n"]
)
async def test_bytes_that_are_not_http_are_refused(junk: bytes) -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(junk)
        answer = await client.answer()
        assert (answer.status, answer.problem["code"]) == (400, "bad_request")
        assert await client.rest() == b""


@pytest.mark.parametrize(
    "sent", [b"junk\r\n", get("/" + "a" * 17 * KIB), get("/", *["A: b"] * 101), post("/early", "Content-Length: 9")]
)
async def test_a_connection_is_freed_without_a_collection(sent: bytes) -> None:
    gc.collect()
    gc.disable()
    try:
        async with serving(body_s=0.1, keep_alive_s=1) as served:
            for _ in range(3):
                client = await served.connect()
                await client.send(sent)
                await client.answer()
                client.writer.transport.abort()
            await served.closed()
            await served.until(lambda: True)
            assert [one for one in gc.get_objects() if isinstance(one, BoundedProtocol)] == []
    finally:
        gc.enable()


async def test_a_request_before_junk_is_answered_first() -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(get("/wait") + b"junk junk\r\n\r\n")
        served.release()
        assert (await client.answer()).status == 200
        assert await client.rest() == b""


async def test_few_requests_may_wait_on_one_connection() -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(get("/wait") + get("/") * 40)
        served.release()
        rest = await client.rest()
        assert rest.count(b"HTTP/1.1 200") == 17
        assert len(served.requests) == 17


OFFER = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")


@pytest.mark.parametrize("in_one_part", [True, False])
async def test_a_request_that_offers_http2_keeps_its_body(in_one_part: bool) -> None:
    async with serving() as served:
        client = await served.connect()
        head, body = post("/", *OFFER, "Content-Length: 19"), b"\r\nUpgrade: a body\r\n"
        if in_one_part:
            await client.send(head + body)
        else:
            await client.send(head)
            await served.received(len(head))
            await client.send(body)
        assert (await client.answer()).body == b"19"
        await client.send(get("/next"))
        assert (await client.answer()).status == 200
        assert [path for path, _ in served.requests] == ["/", "/next"]


async def test_no_other_protocol_is_spoken() -> None:
    async with serving() as served:
        client = await served.connect()
        start, end = get("/", *OFFER).split(b"grade: h2c")
        await client.send(start)
        await served.received(len(start))
        await client.send(b"grade: h2c" + end + get("/hidden"))
        answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await client.rest() == b""
        assert [path for path, _ in served.requests] == ["/"]


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        (b"", b""),
        (b"\r\n", b"HTTP/1.1 408"),
        (b"GET / HT", b"HTTP/1.1 408"),
        (get("/")[:-2], b"HTTP/1.1 408"),
    ],
)
async def test_a_head_that_does_not_arrive_in_time_is_refused(sent: bytes, refusal: bytes) -> None:
    async with serving(head_s=0.1) as served:
        client = await served.connect()
        await client.send(sent)
        assert (await client.rest())[:12] == refusal
        await served.closed()


async def count_bytes_until_refused(head_s: float) -> int:
    """How many bytes of a head, one after the other, a server takes until it refuses the request."""
    async with serving(head_s=head_s) as served:
        client = await served.connect()
        await client.send(b"GET / HTTP/1.1\r\n")
        answer = asyncio.create_task(client.rest())
        sent = 0

        def sends_a_byte() -> bool:
            nonlocal sent
            client.writer.write(b"A: b\r\n"[sent % 6 : sent % 6 + 1])
            sent += 1
            return answer.done()

        await served.until(sends_a_byte)
        assert (await answer)[:12] == b"HTTP/1.1 408"
    return sent


async def test_slow_bytes_do_not_extend_the_time_for_a_head() -> None:
    counts: list[int] = []
    while len(counts) < 6 and max(counts, default=0) <= 10:  # in the time of a head, a busy machine sends few bytes
        counts.append(await count_bytes_until_refused(head_s=0.3 * 2 ** len(counts)))
    assert counts[-1] > 10


@pytest.mark.parametrize("sent", [b"\r\n", b"GET / HT"])
async def test_the_head_of_a_later_request_has_a_deadline_too(sent: bytes) -> None:
    async with serving(head_s=0.1) as served:
        client = await served.connect()
        assert await client.is_open()
        await client.send(sent)
        assert (await client.rest())[:12] == b"HTTP/1.1 408"


async def test_a_body_that_does_not_arrive_in_time_is_refused() -> None:
    async with serving(body_s=0.1) as served:
        client = await served.connect()
        await client.send(post("/path", "Content-Length: 9") + b"abc")
        answer = await client.answer()
        assert (answer.status, answer.problem["instance"]) == (408, "/path")
        assert await client.rest() == b""
        await served.until(lambda: served.gone == 1)
        assert served.requests == []


async def test_a_slow_service_is_not_a_slow_body() -> None:
    async with serving(body_s=0.1 * SLOWNESS, head_s=0.1 * SLOWNESS) as served:
        client = await served.connect()
        await client.send(post("/wait", f"Content-Length: {1024 * KIB}"))
        sending = asyncio.create_task(client.send(b"x" * 1024 * KIB))
        other = await served.connect()
        await other.send(b"GET")
        assert (await other.rest())[:12] == b"HTTP/1.1 408"  # so the time has passed
        served.release()
        assert (await client.answer()).body == b"%d" % (1024 * KIB)
        await sending


async def test_an_answered_request_may_end_its_body() -> None:
    async with serving() as served:
        client = await served.connect()
        await client.send(post("/early", f"Content-Length: {1024 * KIB}") + b"x")
        assert (await client.answer()).status == 200
        await client.send(b"x" * (1024 * KIB - 1))
        assert await client.is_open()


async def test_a_body_that_goes_on_after_the_answer_is_cut_off() -> None:
    async with serving(discarded_bytes=256 * KIB, body_s=3_600) as served:
        client = await served.connect()
        await client.send(post("/early", CHUNKED))
        assert (await client.answer()).status == 200
        chunk = b"%x\r\n" % (16 * KIB) + b"x" * 16 * KIB + b"\r\n"
        sent, _ = await flood(client, chunk, 64 * 1024 * KIB)
        assert sent < 64 * 1024 * KIB
        await served.closed()


async def test_an_answered_request_that_never_ends_is_closed() -> None:
    async with serving(keep_alive_s=1, body_s=0.1) as served:
        client = await served.connect()
        await client.send(post("/early", "Content-Length: 9"))
        assert (await client.answer()).status == 200
        await served.closed()


@pytest.mark.parametrize("header", ["Connection: keep-alive", "Connection: close"])
async def test_a_client_that_does_not_read_is_closed(header: str) -> None:
    async with serving(write_s=0.1) as served:
        client = await served.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(get("/big", header))
        await served.until(lambda: [path for path, _ in served.requests] == ["/big"])
        await served.closed()
        client.writer.transport.abort()


async def test_a_client_that_reads_gets_all_of_a_large_answer() -> None:
    # A slow machine reads the answer for longer than unread answers may exceed their budget.
    budget_bytes = ConnectionLimits().unread_answers_bytes if SLOWNESS == 1 else 2 * BIG_BYTES
    async with serving(write_s=0.5 * SLOWNESS, unread_answers_bytes=budget_bytes) as served:
        client = await served.connect()
        await client.send(get("/big"))
        await client.reader.readuntil(b"\r\n\r\n")
        left = BIG_BYTES
        while left > 0:  # in parts: to gather them in one buffer takes longer than the server waits
            part = await client.reader.read(min(left, 1 << 16))
            assert part == b"x" * len(part) != b""
            left -= len(part)
        assert await client.is_open()


HALF = b"GET / HTTP/1.1\r\nA: "


async def test_half_requests_leave_room_for_newcomers() -> None:
    async with serving(max_connections=10) as served:
        half = [await served.connect() for _ in range(30)]
        for client in half:
            await client.send(HALF)
        newcomer = await served.connect()
        assert await newcomer.is_open()
        assert served.connections <= 10
        assert await half[0].rest() == b""
        await half[-1].send(b"b\r\n\r\n")
        assert (await half[-1].answer()).status == 200


async def test_half_requests_are_closed_before_idle_connections() -> None:
    async with serving(max_connections=4) as served:
        idle = await served.connect()
        assert await idle.is_open()
        half = await served.connect()
        await half.send(HALF)
        others = [await served.connect() for _ in range(3)]
        assert await others[-1].is_open()
        assert await half.rest() == b""
        assert await idle.is_open()


async def test_idle_connections_make_room_too() -> None:
    async with serving(max_connections=4) as served:
        idle = []
        for _ in range(9):
            idle.append(await served.connect())
            assert await idle[-1].is_open()
        assert await idle[0].rest() == b""
        assert all([await client.is_open() for client in idle[-4:]])


async def test_a_request_in_service_is_never_given_up() -> None:
    async with serving(max_connections=4) as served:
        busy = [await served.connect() for _ in range(4)]
        for client in busy:
            await client.send(get("/wait"))
            await served.until(lambda: bool(served.server.server_state.tasks))
        await served.until(lambda: len(served.server.server_state.tasks) == 4)
        newcomer = await served.connect()
        refusal = await newcomer.answer()
        assert (refusal.status, refusal.problem["code"]) == (503, "server_full")
        assert int(refusal.headers["retry-after"]) > 0
        served.release()
        assert [(await client.answer()).status for client in busy] == [200] * 4
        assert await (await served.connect()).is_open()


async def test_unfinished_heads_share_a_budget_of_memory() -> None:
    async with serving(unfinished_heads_bytes=256 * KIB) as served:
        half = [await served.connect() for _ in range(20)]
        for client in half:
            await client.send(HALF + b"a" * 40 * KIB)
        assert await half[0].rest() == b""
        await served.until(lambda: served.connections <= 6)
        await half[-1].send(b"\r\n\r\n")
        assert (await half[-1].answer()).status == 200


async def test_unread_answers_share_a_budget_of_memory() -> None:
    async with serving(unread_answers_bytes=BIG_BYTES, stalled_s=0, write_s=3_600) as served:
        clients = [await served.connect() for _ in range(4)]
        for number, client in enumerate(clients, 1):
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(get("/big"))
            await served.until(lambda number=number: len(served.requests) == number)  # type: ignore[misc]
        await served.until(lambda: served.connections <= 2)
        for client in clients:
            client.writer.transport.abort()
