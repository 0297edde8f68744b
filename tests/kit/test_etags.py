"""Entity tags, and which of them a header names."""

from uuid import UUID

import pytest

from app.kit.etags import is_known, lists_tag, make_tag

TAG = make_tag("chat", 1)
STRONG = TAG.removeprefix("W/")


def test_a_tag_is_weak_and_the_same_for_the_same_parts() -> None:
    assert TAG.startswith('W/"')
    assert make_tag("chat", 1) == TAG
    assert make_tag({"b": 1, "a": UUID(int=1)}) == make_tag({"a": UUID(int=1), "b": 1})


@pytest.mark.parametrize("parts", [("chat", 2), ("chat",), ("memos", 1), ("chat1",), ("chat", "1"), ("chat", [1])])
def test_each_part_changes_the_tag(parts: tuple[object, ...]) -> None:
    assert make_tag(*parts) != TAG


@pytest.mark.parametrize(
    "header", [TAG, STRONG, f'"other", {TAG}', f'W/"other",{STRONG}', f'{TAG}, "with, a comma"', f"  {TAG}  "]
)
def test_a_header_that_lists_the_tag_matches(header: str) -> None:
    assert lists_tag(header, TAG)
    assert is_known(header, TAG)


@pytest.mark.parametrize(
    "header", [None, "", '""', TAG.strip('W/"'), '"other"', f'"x{STRONG[1:]}', "**", f"*, {STRONG[1:]}"]
)
def test_a_header_without_the_tag_does_not_match(header: str | None) -> None:
    assert not lists_tag(header, TAG)
    assert not is_known(header, TAG)


@pytest.mark.parametrize("header", ["*", " * "])
def test_an_asterisk_matches_without_listing_the_tag(header: str) -> None:
    assert not lists_tag(header, TAG)
    assert is_known(header, TAG)
