"""Short-lived tokens for browsers: signed JWTs (HS256), limited to a user, to a chat, or to both."""

from typing import Literal

import jwt
from pydantic import BaseModel, ConfigDict, ValidationError

from app.kit.auth import Caller

_ALGORITHM = "HS256"


class Claims(BaseModel):
    """The claims of a token.

    Attributes:
        iss: Distinguishes our tokens from others that are signed with the same secret.
        exp: When the token expires, in seconds since 1970.
        key_id: The key that created the token; revoking it invalidates the token. None if there was no key yet.
        user_scope: The `user_scope` of the key. False if an older release made the token without this claim.

    """

    model_config = ConfigDict(frozen=True, strict=True)

    iss: Literal["memobook"] = "memobook"
    exp: int
    tenant: str
    scopes: list[Literal["read", "write"]]
    key_id: str | None
    user_id: str | None
    chat_id: str | None
    user_scope: bool = False

    def caller(self) -> Caller:
        """Return the caller that the token identifies."""
        return Caller(self.tenant, frozenset(self.scopes), self.key_id, self.user_id, self.chat_id, self.user_scope)


def sign_token(claims: Claims, secret: bytes) -> str:
    """Return a signed token with `claims`."""
    return jwt.encode(claims.model_dump(), secret, _ALGORITHM)


def read_token(text: str, secret: bytes) -> Claims | None:
    """Return the claims of a token, or None if it is not one of ours. Expiry is not checked."""
    try:
        # Only the signature is verified here: `Claims` validates `iss`, and the keyring checks `exp` with its clock.
        options: jwt.types.Options = {"verify_exp": False, "verify_iss": False}
        return Claims.model_validate(jwt.decode(text, secret, [_ALGORITHM], options))
    except (jwt.InvalidTokenError, ValidationError):
        return None
