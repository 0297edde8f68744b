from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.keys.service import bearer, client_of, made_key, service_on, sqlalchemy_url


@pytest.fixture
async def fresh_database(fresh_database_url: str) -> AsyncIterator[Database]:
    """A database without any key."""
    database = Database(sqlalchemy_url(fresh_database_url), pool_size=4)
    yield database
    await database.close()


@pytest.fixture
def service(fresh_database: Database, clock: SteppedClock) -> FastAPI:
    """A service without any key."""
    return service_on(fresh_database, clock)


@pytest.fixture
async def client(service: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client on this machine, without a key."""
    async with client_of(service) as client:
        yield client


@pytest.fixture
async def keyed_client(database: Database, clock: SteppedClock) -> AsyncIterator[httpx.AsyncClient]:
    """A client with an admin key, on a database that may have keys of other tests."""
    async with client_of(service_on(database, clock)) as client:
        client.headers.update(bearer((await made_key(database)).text))
        yield client
