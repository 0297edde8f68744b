"""Owners of due work: a line of a chat, a user or a tenant. A line is one course of a chat, like a branch."""

from dataclasses import dataclass
from uuid import UUID

from app.kit.ids import tenant_key, user_key

NO_LINE = UUID(int=0)
"""The `line_id` of everything that belongs to a user or a tenant."""

CHAT_WIDE = UUID(int=1)
"""The `line_id` of rows that belong to a whole chat and not to one of its lines."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of an item of due work.

    `key` alone does not identify an owner: a chat and a user of the same id have the same key. Their `line_id` differs.

    Attributes:
        tenant: The tenant, to which fair shares and token limits apply.
        key: The key of the chat, the user or the tenant.
        line_id: The line of the chat; `NO_LINE` for a user or a tenant.
        user_id: The user; None for a line or a tenant.

    """

    tenant: str
    key: UUID
    line_id: UUID = NO_LINE
    user_id: str | None = None

    @classmethod
    def of_line(cls, tenant: str, chat_key: UUID, line_id: UUID) -> "Owner":
        """Return the owner for a line of a chat."""
        return cls(tenant, chat_key, line_id)

    @classmethod
    def of_user(cls, tenant: str, user_id: str) -> "Owner":
        """Return the owner for a user of a tenant."""
        return cls(tenant, user_key(tenant, user_id), user_id=user_id)

    @classmethod
    def of_tenant(cls, tenant: str) -> "Owner":
        """Return the owner for a tenant."""
        return cls(tenant, tenant_key(tenant))

    @property
    def is_line(self) -> bool:
        """Whether the owner is a line of a chat."""
        return self.line_id != NO_LINE

    @property
    def line(self) -> tuple[UUID, UUID]:
        """The chat's key and the line's id. Raises LookupError for a user or a tenant."""
        if not self.is_line:
            raise LookupError(f"{self} is not a line of a chat")
        return self.key, self.line_id


@dataclass(frozen=True, slots=True)
class OwnerErased:
    """The event that a chat was erased, or that a user was erased with everything stored under the user's key.

    Erasing a user emits this event for each of the user's chats, then for the user.

    Attributes:
        tenant: The tenant.
        chat_key: The erased chat; None if a user was erased.
        user_id: The erased user, or the user of the erased chat; None for a chat without a user.
        wide_keys: The keys of the users and tenants to whose shared data the erased chat had contributed.

    """

    tenant: str
    chat_key: UUID | None
    user_id: str | None
    wide_keys: frozenset[UUID] = frozenset()
