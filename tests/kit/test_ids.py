import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from uuid import RFC_4122, UUID

from app.kit.ids import chat_key, tenant_key, user_key, uuid7


def _ms(made: UUID) -> int:
    return made.int >> 80


def test_an_id_has_its_version_variant_and_time() -> None:
    before_ms = time.time_ns() // 1_000_000
    made = uuid7()
    after_ms = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, RFC_4122)
    assert before_ms <= _ms(made) <= after_ms


def test_ids_made_in_a_rush_sort_in_the_order_they_were_made() -> None:
    made = [uuid7() for _ in range(20_000)]
    assert made == sorted(set(made))
    assert [str(one) for one in made] == sorted(str(one) for one in made)
    assert len({_ms(one) for one in made}) < len(made)  # many share a millisecond
    assert {one.version for one in made} == {7}


def test_ids_of_threads_are_unique_and_ascending_in_each() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: [uuid7() for _ in range(2_000)], range(4)))
    assert all(one == sorted(one) for one in made)
    assert len({one for each in made for one in each}) == 8_000


def test_keys_are_computed_from_tenant_and_id() -> None:
    assert chat_key("acme", "story-1").bytes == sha256(b"acme\0story-1").digest()[:16]
    assert user_key("acme", "日本") == UUID(bytes=sha256("acme\0日本".encode()).digest()[:16])
    assert tenant_key("acme").bytes == sha256(b"acme\0").digest()[:16]


def test_a_letter_moved_from_tenant_to_chat_changes_the_key() -> None:
    assert len({chat_key("ab", "c"), chat_key("a", "bc"), chat_key("", "abc"), chat_key("abc", "")}) == 4
