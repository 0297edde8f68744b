"""Tables of keys and of the service's own secrets."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.auth import Scope
from app.kit.db import Table

TENANT_PATTERN = r"^[A-Za-z0-9._:@-]{1,100}$"


class Key(Table):
    """A key, stored as a hash.

    A revoked key keeps its row. The service requires a key once any key has existed, so revoking the last key does not
    open the service again. `from_environment` marks the environment's key: the one that MEMOBOOK_ADMIN_KEY contains.
    """

    __tablename__ = "keys"
    __table_args__ = (
        CheckConstraint(f"tenant ~ '{TENANT_PATTERN}'", name="tenant"),
        CheckConstraint("scopes <@ ARRAY['read', 'write', 'admin'] AND cardinality(scopes) >= 1", name="scopes"),
        CheckConstraint("octet_length(secret_hash) = 32", name="secret_hash"),
        Index("uq_keys_environment", "from_environment", unique=True, postgresql_where=text("from_environment")),
    )

    key_id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    scopes: Mapped[list[Scope]] = mapped_column(ARRAY(Text))
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary)
    from_environment: Mapped[bool] = mapped_column(server_default="false")
    user_scope: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True))
    revoked_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))


class Secret(Table):
    """A secret that the service generated and that all its processes share."""

    __tablename__ = "secrets"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[bytes] = mapped_column(LargeBinary)
