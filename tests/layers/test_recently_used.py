import asyncio

from fastapi import FastAPI

from app.layers.recently_used import RecentlyUsed, age_all, keep_aging
from app.layers.text_cache import TextCache


def kept(cache: RecentlyUsed[str, int], *keys: str) -> list[int | None]:
    return [cache.find(key) for key in keys]


def test_the_sizes_of_all_entries_are_bounded() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(10)
    cache.keep("a", 1, 4)
    cache.keep("b", 2, 4)
    cache.find("a")
    cache.keep("c", 3, 4)
    assert kept(cache, "a", "b", "c") == [1, None, 3]
    cache.keep("c", 4, 7)
    assert kept(cache, "a", "c") == [None, 4]
    cache.keep("c", 5, 11)
    assert (kept(cache, "c"), len(cache)) == ([None], 0)


def test_an_entry_counts_once_after_it_was_replaced() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(10)
    for value in range(5):
        cache.keep("a", value, 5)
    cache.keep("b", 9, 5)
    cache.drop("c")
    assert kept(cache, "a", "b") == [4, 9]
    cache.drop("a")
    cache.keep("c", 7, 5)
    assert kept(cache, "a", "b", "c") == [None, 9, 7]


def test_entries_unused_for_two_ages_are_dropped() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(10)
    cache.keep("a", 1, 1)
    cache.keep("b", 2, 1)
    cache.age()
    cache.find("b")
    cache.age()
    assert kept(cache, "a", "b") == [None, 2]
    cache.age()
    cache.age()
    assert len(cache) == 0


def test_aging_applies_to_all_caches_of_a_process() -> None:
    chats: RecentlyUsed[str, int] = RecentlyUsed(10)
    texts: TextCache[str] = TextCache(10)
    chats.keep("a", 1, 1)
    texts.get("b", lambda: "B")
    age_all()
    assert (len(chats), len(texts)) == (1, 1)
    age_all()
    assert (len(chats), len(texts)) == (0, 0)


async def test_caches_age_until_the_task_ends() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(10)
    cache.keep("a", 1, 1)
    aging = asyncio.create_task(keep_aging(every_s=0))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(cache) == 0
    aging.cancel()
    await asyncio.wait([aging])
    cache.keep("b", 1, 1)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(cache) == 1


async def test_a_served_application_ages_its_caches(app: FastAPI) -> None:
    def running() -> list[str]:
        return [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "age caches"]

    async with app.router.lifespan_context(app):
        assert running() == ["age caches"]
    assert running() == []
