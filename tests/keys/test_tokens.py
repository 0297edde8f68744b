from typing import Any

import jwt
import pytest

from app.keys.tokens import Claims, read_token, sign_token

SECRET = b"s" * 32
CLAIMS = Claims(
    exp=1_775_044_800, tenant="default", scopes=["read"], key_id="3f9c2a7be014", user_id="mira", chat_id=None
)


def test_a_token_says_what_was_signed() -> None:
    assert read_token(sign_token(CLAIMS, SECRET), SECRET) == CLAIMS


def test_a_token_limits_its_caller() -> None:
    caller = CLAIMS.caller()
    assert (caller.tenant, caller.scopes, caller.user_id) == ("default", frozenset({"read"}), "mira")


@pytest.mark.parametrize("text", ["", "a", "a.b.c", "…", "mb_3f9c2a7be014_" + "a" * 64])
def test_other_text_is_no_token(text: str) -> None:
    assert read_token(text, SECRET) is None


def test_a_token_with_a_foreign_signature_is_refused() -> None:
    assert read_token(sign_token(CLAIMS, b"t" * 32), SECRET) is None


@pytest.mark.parametrize(("algorithm", "key"), [("none", None), ("HS512", SECRET * 2)])
def test_no_other_algorithm_counts(algorithm: str, key: bytes | None) -> None:
    text = jwt.encode(CLAIMS.model_dump(), key, algorithm)
    assert read_token(text, key or SECRET) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "another service"},
        {"scopes": ["admin"]},
        {"exp": "tomorrow"},
        {"exp": None},
        {"tenant": 1},
        {"key_id": ["a"]},
    ],
)
def test_signed_claims_of_another_form_are_refused(changed: dict[str, Any]) -> None:
    text = jwt.encode(CLAIMS.model_dump() | changed, SECRET, "HS256")
    assert read_token(text, SECRET) is None
