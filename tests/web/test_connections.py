from app.web.connections import ConnectionTable, Waiting


def test_the_oldest_is_the_one_that_began_to_wait_first() -> None:
    waiting = Waiting[str]()
    assert waiting.oldest() is None
    for number, name in enumerate("abc"):
        waiting.add(name, number)
    waiting.add("a", 9)
    assert waiting.oldest() == "a"
    waiting.remove("a")
    waiting.add("a", 9)
    assert waiting.oldest() == "b"
    assert waiting.oldest(until_s=1) == "b"
    assert waiting.oldest(until_s=0.5) is None


def test_the_bytes_that_wait_are_counted_once() -> None:
    waiting = Waiting[str]()
    waiting.add("a", 0, 10)
    waiting.add("b", 0, 5)
    waiting.add("a", 1, 12)
    assert waiting.total_bytes == 17
    waiting.remove("a")
    assert waiting.total_bytes == 5


def test_unfinished_heads_come_before_idle_and_stalled() -> None:
    table = ConnectionTable[str]()
    table.stalled.add("stalled", 0)
    table.idle.add("idle", 1)
    table.unfinished.add("unfinished", 2)
    for expected, waiting in (("unfinished", table.unfinished), ("idle", table.idle), ("stalled", table.stalled)):
        assert table.next_victim() == expected
        waiting.remove(expected)
    assert table.next_victim() is None
