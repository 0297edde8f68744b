"""What goes over the wire about keys and tokens."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.keys.models import TENANT_PATTERN
from app.kit.auth import Scope
from app.kit.blame import FieldError
from app.kit.wire import CHAT_ID_PATTERN, Text

MAX_TTL_S = 86_400

_KEY_ID = "3f9c2a7be014"
_SCOPES = "`read` and `write` reach the tenant's data; `admin` makes, lists and revokes keys of every tenant."


class KeyIn(BaseModel):
    """A key to be made. The first one needs the scope `admin`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"tenant": "default", "scopes": ["read", "write", "admin"]}]},
    )

    tenant: str = Field(pattern=TENANT_PATTERN, description="Whose data it reaches; nothing else exists for it.")
    scopes: Annotated[set[Scope], Field(min_length=1)] = Field(description=_SCOPES)


class KeyOut(BaseModel):
    """A key, without its secret."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": _KEY_ID,
                    "tenant": "default",
                    "scopes": ["read", "write"],
                    "from_environment": False,
                    "created_at": "2026-04-01T22:15:00Z",
                }
            ]
        }
    )

    id: str = Field(description="Its id, which is also the second part of the key.")
    tenant: str = Field(description="Whose data it reaches.")
    scopes: list[Scope] = Field(description=_SCOPES)
    from_environment: bool = Field(description="Whether it is the one that MEMOBOOK_ADMIN_KEY holds.")
    created_at: datetime = Field(description="When it was made.")


class NewKeyOut(BaseModel):
    """A key that was just made."""

    id: str = Field(description="Its id, to revoke it by.", examples=[_KEY_ID])
    tenant: str = Field(description="Whose data it reaches.", examples=["default"])
    scopes: list[Scope] = Field(description=_SCOPES, examples=[["read", "write", "admin"]])
    key: str = Field(
        description="The key itself, shown this once.", examples=[f"mb_{_KEY_ID}_{'0123456789abcdef' * 4}"]
    )


class TokenIn(BaseModel):
    """A token to be made: for one user's chats, for one chat, or for one chat if it is that user's."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"user_id": "mira", "scopes": ["read", "write"], "ttl_s": 3_600}]},
    )

    user_id: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Only this user's chats."
    )
    chat_id: Annotated[str, Field(pattern=CHAT_ID_PATTERN)] | None = Field(None, description="Only this chat.")
    scopes: Annotated[set[Literal["read", "write"]], Field(min_length=1)] = Field(
        description="What it may do: no more than its key."
    )
    ttl_s: int = Field(ge=1, le=MAX_TTL_S, description="How many seconds it lives.")

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.user_id is None and self.chat_id is None:
            raise FieldError(("user_id",), "a token is limited to a user, a chat (`chat_id`) or both")
        return self


class TokenOut(BaseModel):
    """A token that was just made."""

    token: str = Field(description="Send it like a key: `Authorization: Bearer <token>`.", examples=["eyJhbGciOi…"])
    expires_at: datetime = Field(description="From then on it is refused.", examples=["2026-04-01T23:15:00Z"])
