"""FastAPI dependencies: the request's database session, the database, the clock."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from app.kit.clock import Clock
from app.kit.db import Database, DbSession


async def unit_of_work(request: Request) -> AsyncIterator[DbSession]:
    """Run the request in one transaction, which is committed before the response is sent."""
    database: Database = request.app.state.database
    async with database.unit_of_work() as db_session:
        yield db_session


async def database(request: Request) -> Database:
    """Return the application's database, for reads outside a transaction."""
    found: Database = request.app.state.database
    return found


async def clock(request: Request) -> Clock:
    """Return the application's clock."""
    found: Clock = request.app.state.clock
    return found


Db = Annotated[DbSession, Depends(unit_of_work, scope="function")]
Pool = Annotated[Database, Depends(database)]
Now = Annotated[Clock, Depends(clock)]
