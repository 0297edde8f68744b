"""Short-lived tokens for browsers: what a key may do, narrowed to one user or chat, signed (JWT, HS256)."""

from typing import Literal

import jwt
from pydantic import BaseModel, ConfigDict, ValidationError

from app.kit.auth import Caller

_ALGORITHM = "HS256"


class Claims(BaseModel):
    """What a token says.

    Attributes:
        iss: Tells our tokens from others that were signed with the same secret.
        exp: When it ends, in seconds since 1970.
        key_id: The key it was made with and dies with; None if there was no key yet.

    """

    model_config = ConfigDict(frozen=True, strict=True)

    iss: Literal["memobook"] = "memobook"
    exp: int
    tenant: str
    scopes: list[Literal["read", "write"]]
    key_id: str | None
    user_id: str | None
    chat_id: str | None

    def caller(self) -> Caller:
        """Whoever presents the token."""
        return Caller(self.tenant, frozenset(self.scopes), self.key_id, self.user_id, self.chat_id)


def sign_token(claims: Claims, secret: bytes) -> str:
    """The token that says `claims`."""
    return jwt.encode(claims.model_dump(), secret, _ALGORITHM)


def read_token(text: str, secret: bytes) -> Claims | None:
    """What a token says, or None if it is not one of ours; whether it has expired is left to the caller."""
    try:
        # The model looks at the claims, and the time is the service's clock's: here only the signature counts.
        options: jwt.types.Options = {"verify_exp": False, "verify_iss": False}
        return Claims.model_validate(jwt.decode(text, secret, [_ALGORITHM], options))
    except (jwt.InvalidTokenError, ValidationError):
        return None
