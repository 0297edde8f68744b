"""Requests and responses of keys and tokens."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.keys.models import TENANT_PATTERN
from app.kit.auth import Scope
from app.kit.validation_errors import CHAT_ID_PATTERN, FieldError
from app.kit.wire import Text

MAX_TTL_S = 86_400

_KEY_ID = "3f9c2a7be014"
_SCOPES = "`read` and `write` permit access to the tenant's data, `admin` to the keys of all tenants and to `/metrics`."

_USER_SCOPE = (
    "Whether tokens of this key that are limited to a chat also see and write what is known of the chat's user and the "
    "tenant, and see diary entries of the user's other chats. The key and its other tokens always do."
)


class KeyIn(BaseModel):
    """A key to create. The first key needs the scope `admin`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"tenant": "default", "scopes": ["read", "write", "admin"]}]},
    )

    tenant: str = Field(pattern=TENANT_PATTERN, description="The tenant whose data the key gives access to.")
    scopes: Annotated[set[Scope], Field(min_length=1)] = Field(description=_SCOPES)
    user_scope: bool = Field(False, description=_USER_SCOPE)


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
                    "user_scope": False,
                    "created_at": "2026-04-01T22:15:00Z",
                }
            ]
        }
    )

    id: str = Field(description="The id of the key. A generated key begins with `mb_<id>_`.")
    tenant: str = Field(description="The tenant whose data the key gives access to.")
    scopes: list[Scope] = Field(description=_SCOPES)
    from_environment: bool = Field(description="Whether the key was set with MEMOBOOK_ADMIN_KEY.")
    user_scope: bool = Field(description=_USER_SCOPE)
    created_at: datetime = Field(description="When it was created.")


class NewKeyOut(BaseModel):
    """A new key."""

    id: str = Field(description="The id of the key, needed to revoke it.", examples=[_KEY_ID])
    tenant: str = Field(description="The tenant whose data the key gives access to.", examples=["default"])
    scopes: list[Scope] = Field(description=_SCOPES, examples=[["read", "write", "admin"]])
    user_scope: bool = Field(description=_USER_SCOPE, examples=[False])
    key: str = Field(
        description="The key itself. It is returned only once.", examples=[f"mb_{_KEY_ID}_{'0123456789abcdef' * 4}"]
    )


class TokenIn(BaseModel):
    """A token to create. It needs `user_id`, `chat_id` or both."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"user_id": "mira", "scopes": ["read", "write"], "ttl_s": 3_600}]},
    )

    user_id: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Limits the token to the chats of this user."
    )
    chat_id: Annotated[str, Field(pattern=CHAT_ID_PATTERN)] | None = Field(
        None,
        description="Limits the token to this chat.",
    )
    scopes: Annotated[set[Literal["read", "write"]], Field(min_length=1)] = Field(
        description="Only scopes of the key are allowed."
    )
    ttl_s: int = Field(ge=1, le=MAX_TTL_S, description="The lifetime of the token in seconds.")

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.user_id is None and self.chat_id is None:
            raise FieldError(("user_id",), "a token needs `user_id`, `chat_id` or both to limit it")
        return self


class TokenOut(BaseModel):
    """A new token."""

    token: str = Field(description="Send it like a key: `Authorization: Bearer <token>`.", examples=["eyJhbGciOi…"])
    expires_at: datetime = Field(description="When the token expires.", examples=["2026-04-01T23:15:00Z"])
