"""`/v1/tokens`: what a browser is given instead of a key."""

import asyncio
from typing import Any

import httpx
import jwt
import pytest
from fastapi import FastAPI

from app.keys.keyring import DatabaseKeyring
from app.keys.service import CreatedKey
from app.keys.tokens import Claims
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.keys.service import bearer, client_of, made_key, service_on

WANTED = {"user_id": "mira", "scopes": ["read", "write"], "ttl_s": 60}


@pytest.fixture
async def made(database: Database) -> CreatedKey:
    """A key that may read and write."""
    return await made_key(database, "read", "write", tenant="a")


async def make_token(client: httpx.AsyncClient, key: CreatedKey, **wanted: Any) -> str:
    answer = await client.post("/v1/tokens", json=WANTED | wanted, headers=bearer(key.text))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


async def test_a_token_says_when_it_ends(keyed_client: httpx.AsyncClient, made: CreatedKey) -> None:
    answer = await keyed_client.post("/v1/tokens", json=WANTED, headers=bearer(made.text))
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    assert set(answer.json()) == {"token", "expires_at"}
    assert answer.json()["expires_at"] == "2026-04-01T12:01:00Z"


@pytest.mark.parametrize(
    "limits",
    [{"user_id": "mira"}, {"user_id": None, "chat_id": "lighthouse"}, {"user_id": "mira", "chat_id": "lighthouse"}],
)
async def test_it_is_limited_to_its_user_or_chat(
    keyed_client: httpx.AsyncClient, made: CreatedKey, limits: dict[str, str | None]
) -> None:
    token = await make_token(keyed_client, made, scopes=["read"], **limits)
    me = (await keyed_client.get("/me", headers=bearer(token))).json()
    assert me == {"tenant": "a", "scopes": ["read"], "user_id": None, "chat_id": None} | limits
    assert (await keyed_client.post("/me", headers=bearer(token))).status_code == 403


async def test_it_ends_at_its_time(keyed_client: httpx.AsyncClient, made: CreatedKey, clock: SteppedClock) -> None:
    token = await make_token(keyed_client, made)
    clock.step(59.9)
    assert (await keyed_client.get("/me", headers=bearer(token))).status_code == 200
    clock.step(0.1)
    answer = await keyed_client.get("/me", headers=bearer(token))
    assert (answer.status_code, answer.json()["detail"]) == (401, "This token has expired.")


async def test_it_is_never_wider_than_its_key(database: Database, keyed_client: httpx.AsyncClient) -> None:
    reading = await made_key(database, "read")
    answer = await keyed_client.post("/v1/tokens", json=WANTED, headers=bearer(reading.text))
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert await make_token(keyed_client, reading, scopes=["read"])


async def test_a_token_makes_neither_tokens_nor_keys(database: Database, keyed_client: httpx.AsyncClient) -> None:
    token = await make_token(keyed_client, await made_key(database))
    for path, body in (("/v1/tokens", WANTED), ("/v1/keys", {"tenant": "a", "scopes": ["read"]})):
        assert (await keyed_client.post(path, json=body, headers=bearer(token))).status_code == 403


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("user_id", None),
        ("user_id", ""),
        ("user_id", "m" * 201),
        ("user_id", "m\x00"),
        ("chat_id", "a b"),
        ("chat_id", "c" * 201),
        ("scopes", []),
        ("scopes", ["admin"]),
        ("ttl_s", 0),
        ("ttl_s", 86_401),
        ("ttl_s", 1.5),
        ("ttl_s", None),
        ("tenant", "b"),
    ],
)
async def test_a_malformed_token_is_a_422_that_names_the_field(
    keyed_client: httpx.AsyncClient, made: CreatedKey, field: str, value: Any
) -> None:
    answer = await keyed_client.post("/v1/tokens", json=WANTED | {field: value}, headers=bearer(made.text))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["loc"][:2] == ["body", field]


async def test_a_token_ends_with_its_key(database: Database, keyed_client: httpx.AsyncClient, made: CreatedKey) -> None:
    token = await make_token(keyed_client, made)
    assert (await keyed_client.get("/me", headers=bearer(token))).status_code == 200
    admin = await made_key(database)
    assert (await keyed_client.delete(f"/v1/keys/{made.key_id}", headers=bearer(admin.text))).status_code == 204
    assert (await keyed_client.get("/me", headers=bearer(token))).status_code == 401


async def test_a_token_made_without_a_key_ends_with_the_first_key(
    fresh_database: Database, service: FastAPI, client: httpx.AsyncClient
) -> None:
    token = (await client.post("/v1/tokens", json=WANTED)).json()["token"]
    me = (await client.get("/me", headers=bearer(token))).json()
    assert (me["tenant"], me["user_id"]) == ("default", "mira")
    forwarded = bearer(token) | {"X-Forwarded-For": "1.2.3.4"}
    assert (await client.get("/me", headers=forwarded)).json()["code"] == "loopback_only"
    await made_key(fresh_database)
    service.state.keyring.forget()
    assert (await client.get("/me", headers=bearer(token))).status_code == 401


async def test_processes_share_a_secret_created_on_first_use(fresh_database: Database, clock: SteppedClock) -> None:
    rings = [DatabaseKeyring(fresh_database, clock=clock) for _ in range(4)]
    claims = Claims(exp=2_000_000_000, tenant="a", scopes=["read"], key_id=None, user_id="mira", chat_id=None)
    assert len(set(await asyncio.gather(*[ring.sign(claims) for ring in rings]))) == 1
    async with fresh_database.raw() as connection:
        assert await connection.fetchval("SELECT octet_length(value) FROM secrets WHERE name = 'jwt'") == 32


async def test_a_given_secret_signs_and_none_is_made(fresh_database: Database, clock: SteppedClock) -> None:
    secret = "a secret of thirty-two characters"
    async with client_of(service_on(fresh_database, clock, jwt_secret=secret)) as client:
        token = (await client.post("/v1/tokens", json=WANTED)).json()["token"]
    assert jwt.decode(token, secret, ["HS256"], {"verify_exp": False})["user_id"] == "mira"
    async with fresh_database.raw() as connection:
        assert await connection.fetchval("SELECT count(*) FROM secrets") == 0
