"""What routes ask for: the database session of this request, the clock, the settings."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from app.kit.clock import Clock
from app.kit.db import Database, DbSession


async def unit_of_work(request: Request) -> AsyncIterator[DbSession]:
    """One transaction for the request, committed before the answer is sent."""
    database: Database = request.app.state.database
    async with database.unit_of_work() as db_session:
        yield db_session


async def database(request: Request) -> Database:
    """The application's database, for reads outside a transaction."""
    found: Database = request.app.state.database
    return found


async def clock(request: Request) -> Clock:
    """The application's clock."""
    found: Clock = request.app.state.clock
    return found


Db = Annotated[DbSession, Depends(unit_of_work, scope="function")]
Pool = Annotated[Database, Depends(database)]
Now = Annotated[Clock, Depends(clock)]
