import hashlib
import re

import pytest

from app.keys.credentials import hash_of, key_id_in, new_key_id, new_key_text


def test_a_key_is_its_id_and_256_bits() -> None:
    key_id = new_key_id()
    found = re.fullmatch(r"mb_([^_]+)_([^_]+)", new_key_text(key_id))
    assert found is not None
    assert found[1] == key_id
    assert len(bytes.fromhex(found[2])) * 8 == 256


def test_no_two_keys_are_alike() -> None:
    assert len({new_key_text("3f9c2a7be014") for _ in range(100)}) == 100
    assert len({new_key_id() for _ in range(100)}) == 100


def test_the_id_is_read_from_a_key() -> None:
    assert key_id_in(new_key_text("3f9c2a7be014")) == "3f9c2a7be014"


@pytest.mark.parametrize(
    "text",
    ["", "mb_", "mb_3f9c2a7be014", f"mb_3f9c2a7be014_{'a' * 63}", f"mb_3F9C2A7BE014_{'a' * 64}", "x" * 80],
)
def test_other_text_names_no_id(text: str) -> None:
    assert key_id_in(text) is None


def test_a_key_is_kept_as_its_sha_256() -> None:
    assert hash_of("mb_a_b") == hashlib.sha256(b"mb_a_b").digest()
