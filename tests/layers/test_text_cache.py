from collections.abc import Callable

from app.layers.text_cache import TextCache


def counting(calls: list[str], text: str) -> Callable[[], str]:
    def compute() -> str:
        calls.append(text)
        return text.upper()

    return compute


def test_a_result_is_computed_once() -> None:
    cache: TextCache[str] = TextCache(100)
    calls: list[str] = []
    assert [cache.get("abc", counting(calls, "abc")) for _ in range(3)] == ["ABC"] * 3
    assert calls == ["abc"]


def test_further_arguments_are_part_of_the_key() -> None:
    cache: TextCache[str] = TextCache(100)
    assert cache.get("abc", lambda: "one", given=1) == "one"
    assert cache.get("abc", lambda: "two", given=2) == "two"
    assert cache.get("abc", lambda: "three", given=1) == "one"


def test_the_results_used_last_are_kept() -> None:
    cache: TextCache[str] = TextCache(6)
    calls: list[str] = []
    for text in ("aaa", "bbb", "aaa", "ccc", "aaa", "bbb"):
        cache.get(text, counting(calls, text))
    assert calls == ["aaa", "bbb", "ccc", "bbb"]
    assert len(cache) == 2


def test_a_text_beyond_the_limit_is_not_kept() -> None:
    cache: TextCache[str] = TextCache(3)
    calls: list[str] = []
    for text in ("aaa", "long", "long", "aaa"):
        cache.get(text, counting(calls, text))
    assert calls == ["aaa", "long", "long"]
