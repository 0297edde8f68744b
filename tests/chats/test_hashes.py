from hypothesis import given
from hypothesis import strategies as st

from app.chats.hashes import DIGEST_BYTES, content_digest, identity, range_hash

_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
_names = st.none() | _texts.filter(bool)
_roles = st.sampled_from(["user", "assistant"])
_members = st.lists(st.tuples(st.integers(1, 2**31 - 1), st.binary(min_size=16, max_size=16)), max_size=4)


@given(_roles, _texts, _roles, _texts)
def test_equal_identities_need_equal_role_and_text(role: str, content: str, other_role: str, other: str) -> None:
    assert (identity(role, content) == identity(other_role, other)) == ((role, content) == (other_role, other))


@given(st.tuples(_roles, _names, _texts), st.tuples(_roles, _names, _texts))
def test_a_digest_changes_with_the_text_and_with_the_speaker(
    one: tuple[str, str | None, str], other: tuple[str, str | None, str]
) -> None:
    assert (content_digest(*one) == content_digest(*other)) == (one == other)


def test_a_word_moved_from_name_to_text_changes_the_digest() -> None:
    assert content_digest("user", "Mira says", "hello") != content_digest("user", "Mira", "says hello")


@given(_members, _members)
def test_a_range_hash_depends_on_its_members_and_their_order(
    one: list[tuple[int, bytes]], other: list[tuple[int, bytes]]
) -> None:
    assert (range_hash(one) == range_hash(other)) == (one == other)
    assert range_hash(iter(one)) == range_hash(one)
    assert len(range_hash(one)) == DIGEST_BYTES


@given(_members.filter(bool), st.data())
def test_a_range_with_one_member_less_has_another_hash(members: list[tuple[int, bytes]], data: st.DataObject) -> None:
    gone = data.draw(st.integers(0, len(members) - 1))
    assert range_hash([*members[:gone], *members[gone + 1 :]]) != range_hash(members)


def test_hashes_are_those_that_stored_rows_were_made_with() -> None:
    # Another value here would make every retry a conflict, and every memo stale.
    digest = content_digest("assistant", "Kai", "I kept your letters. 手紙")
    assert identity("user", "Hello.").hex() == "dacfc79c422a3c6f4d4696ada769dbca"
    assert digest.hex() == "782e85fb30d6ef493e836064577e6f49"
    assert range_hash([(1, digest), (2, bytes(16))]).hex() == "398fd673faab70ab530a3c74612fe07c"
