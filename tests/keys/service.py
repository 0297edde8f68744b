"""An application with only the routes of keys and one that returns the caller."""

from typing import Any

import httpx
from fastapi import FastAPI, Request

from app.keys.keyring import DatabaseKeyring
from app.keys.routes import router
from app.keys.service import CreatedKey, create_key
from app.kit.auth import Reader, Writer
from app.kit.clock import Clock
from app.kit.db import Database
from app.kit.settings import Settings
from app.problems import install_handlers
from tests.conftest import NOON

EVERYTHING = ["read", "write", "admin"]


def service_on(database: Database, clock: Clock, **keyring: Any) -> FastAPI:
    """One process of the service: what it has cached is its own."""
    app = FastAPI()
    app.state.database = database
    app.state.clock = clock
    app.state.keyring = DatabaseKeyring(database, clock=clock, **keyring)
    app.include_router(router)
    install_handlers(app)

    @app.get("/me")
    async def me(caller: Reader) -> dict[str, Any]:
        return {
            "tenant": caller.tenant,
            "scopes": sorted(caller.scopes),
            "user_id": caller.user_id,
            "chat_id": caller.chat_id,
        }

    @app.post("/me")
    async def change_me(_caller: Writer) -> None:
        pass

    return app


def client_of(app: FastAPI, *, peer: str = "127.0.0.1") -> httpx.AsyncClient:
    """A client of `app` that connects from `peer`."""
    transport = httpx.ASGITransport(app, client=(peer, 50_000))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost:8000")


def bearer(text: str) -> dict[str, str]:
    """The header that carries a key or token."""
    return {"Authorization": f"Bearer {text}"}


def sqlalchemy_url(url: str) -> str:
    """The same database, with the driver named."""
    return Settings(database_url=url, _env_file=None).sqlalchemy_url


def request_with(http_version: str = "1.1", **headers: str) -> Request:
    """A request from this machine, as the keyring sees it."""
    raw = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
    return Request({"type": "http", "http_version": http_version, "headers": raw, "client": ("127.0.0.1", 50_000)})


async def made_key(database: Database, *scopes: str, tenant: str = "default") -> CreatedKey:
    """A key that another process has made."""
    async with database.unit_of_work() as db_session:
        return await create_key(db_session, tenant, scopes or EVERYTHING, NOON)
