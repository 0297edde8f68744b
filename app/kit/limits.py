"""How many tokens the model may use for a tenant in a month. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The monthly limit of each tenant, in tokens of prompts and answers together.

    Attributes:
        default: Holds for every tenant that has none of its own; None is no limit.
        of: The limits of single tenants, in place of the default; None is no limit.

    """

    default: int | None = None
    of: Mapping[str, int | None] = field(default_factory=dict)

    def limit_of(self, tenant: str) -> int | None:
        """The tenant's limit, or None if it has none."""
        return self.of.get(tenant, self.default)

    def is_reached(self, tenant: str, used_tokens: int) -> bool:
        """Whether a tenant that has used so many tokens in a month may use no more in it."""
        limit_tokens = self.limit_of(tenant)
        return limit_tokens is not None and used_tokens >= limit_tokens

    def limits_anyone(self) -> bool:
        """Whether any tenant can have a limit at all."""
        return self.default is not None or any(limit is not None for limit in self.of.values())


UNLIMITED = TokenLimits()
