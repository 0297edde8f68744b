"""Monthly token limits of tenants. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The monthly limit of each tenant, in tokens of prompts and answers together.

    Attributes:
        default: The limit of every tenant without its own limit; None means unlimited.
        of: The limits of individual tenants, which override the default; None means unlimited.

    """

    default: int | None = None
    of: Mapping[str, int | None] = field(default_factory=dict)

    def limit_of(self, tenant: str) -> int | None:
        """Return the tenant's limit in tokens, or None if it is unlimited."""
        return self.of.get(tenant, self.default)

    def is_reached(self, tenant: str, used_tokens: int) -> bool:
        """Return whether a tenant that has used `used_tokens` in a month has reached its limit."""
        limit_tokens = self.limit_of(tenant)
        return limit_tokens is not None and used_tokens >= limit_tokens

    def limits_anyone(self) -> bool:
        """Return whether any tenant has a limit."""
        return self.default is not None or any(limit is not None for limit in self.of.values())


UNLIMITED = TokenLimits()
