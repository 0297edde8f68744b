"""FastAPI dependencies: the request's database session, the database, the clock."""

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request

from app.kit.clock import Clock
from app.kit.db import Database, DbSession

_SHARE = "memobook.share"


def set_share(request: Request, tenant: str, chat: UUID | None = None) -> None:
    """Set whose share of the connections the request uses, and the key of the chat that it changes, if any."""
    request.scope[_SHARE] = (tenant, chat)


def share_of(request: Request) -> tuple[str | None, UUID | None]:
    """Return what `set_share` has set. If it was not called, the request counts for the service itself (None)."""
    share: tuple[str | None, UUID | None] = request.scope.get(_SHARE, (None, None))
    return share


async def unit_of_work(request: Request) -> AsyncIterator[DbSession]:
    """Run the request in one transaction, which is committed before the response is sent."""
    database: Database = request.app.state.database
    async with database.unit_of_work(*share_of(request)) as db_session:
        yield db_session


async def database(request: Request) -> Database:
    """Return the application's database, for routes that do not use `Db`."""
    found: Database = request.app.state.database
    return found


async def clock(request: Request) -> Clock:
    """Return the application's clock."""
    found: Clock = request.app.state.clock
    return found


Db = Annotated[DbSession, Depends(unit_of_work, scope="function")]
Pool = Annotated[Database, Depends(database)]
Now = Annotated[Clock, Depends(clock)]
