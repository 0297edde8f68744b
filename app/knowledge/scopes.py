"""The scopes in which something is known: a chat, a user with one character, a user, or the tenant."""

from dataclasses import dataclass
from uuid import UUID

from app.chats.settings import Scope
from app.kit.ids import tenant_key, user_key
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.knowledge.known import SCOPES


@dataclass(frozen=True, slots=True)
class ScopeKey:
    """A scope, as the tables identify it.

    Attributes:
        name: Which of SCOPES it is.
        tenant: The tenant.
        owner_key: The key of the chat, the user or the tenant.
        line_id: CHAT_WIDE for a chat, otherwise NO_LINE.
        character: The character's name if `name` is `character`, otherwise empty.

    """

    name: Scope
    tenant: str
    owner_key: UUID
    line_id: UUID = NO_LINE
    character: str = ""

    @property
    def rank(self) -> int:
        """The position among SCOPES; the nearest scope has 0."""
        return SCOPES.index(self.name)

    @property
    def wide_key(self) -> UUID | None:
        """The key of the user or the tenant; None for a chat."""
        return None if self.name == "chat" else self.owner_key

    @classmethod
    def of_chat(cls, tenant: str, chat_key: UUID) -> "ScopeKey":
        """Return the scope of a chat, which is the same on all of its lines."""
        return cls("chat", tenant, chat_key, CHAT_WIDE)

    @classmethod
    def of_user(cls, tenant: str, user_id: str) -> "ScopeKey":
        """Return the scope of a user."""
        return cls("user", tenant, user_key(tenant, user_id))

    @classmethod
    def of_character(cls, tenant: str, user_id: str, character: str) -> "ScopeKey":
        """Return the scope of a user with one character."""
        return cls("character", tenant, user_key(tenant, user_id), character=character)

    @classmethod
    def of_tenant(cls, tenant: str) -> "ScopeKey":
        """Return the scope `global`: a whole tenant."""
        return cls("global", tenant, tenant_key(tenant))

    @classmethod
    def of_name(
        cls, name: Scope, *, tenant: str, chat_key: UUID, user_id: str | None, character: str | None
    ) -> "ScopeKey":
        """Return the scope of that name, seen from a chat.

        A chat without a user has no scope wider than itself, and without a known character there is no scope
        `character`: the scope is then the chat.
        """
        match name:
            case "global" if user_id is not None:
                return cls.of_tenant(tenant)
            case "user" if user_id is not None:
                return cls.of_user(tenant, user_id)
            case "character" if user_id is not None and character:
                return cls.of_character(tenant, user_id, character)
        return cls.of_chat(tenant, chat_key)
