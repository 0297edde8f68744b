"""Which versions are true, against a slow reference; and what a fold replaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.narratives.chain import Chain, Link
from tests.narratives.chains import chains


def is_valid(chain: Chain, at: int) -> bool:
    """By the rule, spelled out: everything back to a person's text, or to the beginning, says what it said."""
    link = chain.links[at]
    if link.origin == "person":
        return True
    return link.is_fresh and (at == 0 or is_valid(chain, at - 1))


@given(chains(), st.integers(0, 40) | st.none(), st.booleans())
def test_the_latest_valid_version_equals_that_of_a_slow_search(
    chain: Chain, before: int | None, by_person: bool
) -> None:
    fitting = [
        link
        for at, link in enumerate(chain.links)
        if is_valid(chain, at)
        and not link.deleted
        and (before is None or link.last_unit < before)
        and (not by_person or link.origin == "person")
    ]
    assert chain.latest_valid(before, by_person=by_person) == (fitting[-1] if fitting else None)


@given(chains(), st.integers(0, 8))
def test_a_version_is_found_only_while_it_is_valid(chain: Chain, version: int) -> None:
    fitting = [link for at, link in enumerate(chain.links) if is_valid(chain, at) and not link.deleted]
    assert chain.find_valid(version) == next((link for link in fitting if link.version == version), None)


@given(chains(), st.integers(0, 40), st.booleans())
def test_a_context_contains_a_kept_text_before_its_cut(chain: Chain, before: int, by_person: bool) -> None:
    fitting = [
        link
        for at, link in enumerate(chain.links)
        if is_valid(chain, at)
        and not link.deleted
        and (link.last_unit < before or (link.has_kept and link.origin == "person"))
        and (not by_person or link.origin == "person")
    ]
    assert chain.latest_usable(before, by_person=by_person) == (fitting[-1] if fitting else None)


@given(chains())
def test_without_kept_ends_the_chain_before_kept_texts(chain: Chain) -> None:
    usable = [
        link for at, link in enumerate(chain.links) if is_valid(chain, at) and not link.deleted and not link.has_kept
    ]
    before = chain.without_kept()
    assert before.latest_valid() == (usable[-1] if usable else None)
    assert list(before.links) == list(chain.links[: len(before.links)])


@given(chains())
def test_coverage_ends_with_the_latest_valid_version(chain: Chain) -> None:
    true = [link for at, link in enumerate(chain.links) if is_valid(chain, at) and not link.deleted]
    assert chain.covered == (true[-1].last_unit if true else 0)


@given(chains())
def test_a_generated_version_is_stale_exactly_if_it_is_invalid(chain: Chain) -> None:
    for at, link in enumerate(chain.links):
        if link.origin != "person":
            assert chain.is_stale(link.version) is not is_valid(chain, at)


@given(chains())
def test_a_personal_version_is_stale_if_its_base_is(chain: Chain) -> None:
    for at, link in enumerate(chain.links):
        if link.origin == "person":
            of_before = at > 0 and chain.links[at - 1].origin != "person" and not is_valid(chain, at - 1)
            former_person = at > 0 and chain.links[at - 1].origin == "person"
            assert chain.is_stale(link.version) == (not link.is_fresh or (of_before and not former_person))


@given(chains())
def test_a_fold_replaces_only_invalid_generated_versions(chain: Chain) -> None:
    base = chain.latest_valid()
    gone = chain.superseded_by(base)
    left = Chain([link for link in chain.links if link.version not in gone])
    assert left.latest_valid() == base
    assert all(link.origin != "person" for link in chain.links if link.version in gone)
    assert all(base is None or version > base.version for version in gone)


def test_a_version_outside_the_chain_raises_a_key_error() -> None:
    with pytest.raises(KeyError):
        Chain().is_stale(1)


def test_a_version_without_own_coverage_has_no_step() -> None:
    assert Link(1, None, 1, 1, "model", True).has_step
    assert Link(2, 1, 2, 9, "person", True).has_step
    assert not Link(1, None, 1, 0, "person", True).has_step
