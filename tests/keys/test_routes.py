"""`/v1/keys`, and whom the service lets in."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.keys.service import EVERYTHING, bearer, client_of, made_key, service_on

ADMIN = {"tenant": "default", "scopes": EVERYTHING}


@pytest.fixture
async def admin(fresh_database: Database, client: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client with a key that may do everything."""
    client.headers.update(bearer((await made_key(fresh_database)).text))
    return client


async def test_a_key_is_shown_only_when_it_is_created(admin: httpx.AsyncClient) -> None:
    answer = await admin.post("/v1/keys", json={"tenant": "a", "scopes": ["write", "read"]})
    key = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    assert set(key) == {"id", "tenant", "scopes", "user_scope", "key"}
    assert (key["tenant"], key["scopes"]) == ("a", ["read", "write"])
    assert key["key"].startswith(f"mb_{key['id']}_")
    listed = await admin.get("/v1/keys")
    assert key["id"] in listed.text
    assert key["key"].rpartition("_")[2] not in listed.text


async def test_a_key_says_what_its_tokens_of_a_chat_see(admin: httpx.AsyncClient) -> None:
    for given, expected in (({}, False), ({"user_scope": False}, False), ({"user_scope": True}, True)):
        key = (await admin.post("/v1/keys", json={"tenant": "a", "scopes": ["read"], **given})).json()
        listed = {one["id"]: one for one in (await admin.get("/v1/keys", params={"limit": 500})).json()["items"]}
        read = (await admin.get(f"/v1/keys/{key['id']}")).json()
        assert [one["user_scope"] for one in (key, listed[key["id"]], read)] == [expected] * 3


async def test_an_admin_of_one_tenant_makes_keys_for_another(admin: httpx.AsyncClient) -> None:
    key = (await admin.post("/v1/keys", json={"tenant": "b", "scopes": ["read"]})).json()["key"]
    me = (await admin.get("/me", headers=bearer(key))).json()
    assert (me["tenant"], me["scopes"]) == ("b", ["read"])


async def test_keys_are_listed_newest_first_page_by_page(admin: httpx.AsyncClient, clock: SteppedClock) -> None:
    made = []
    for tenant in ("a", "b", "c"):
        clock.step(1)
        made.append((await admin.post("/v1/keys", json={"tenant": tenant, "scopes": ["read"]})).json()["id"])
    first = (await admin.get("/v1/keys", params={"limit": 2})).json()
    second = (await admin.get("/v1/keys", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [key["id"] for key in first["items"] + second["items"]][:3] == made[::-1]
    assert len(second["items"]) == 2
    assert second["next_cursor"] is None
    assert set(first["items"][0]) == {"id", "tenant", "scopes", "from_environment", "user_scope", "created_at"}
    assert first["items"][0]["created_at"] == "2026-04-01T12:00:03Z"


async def test_keys_of_the_same_moment_are_on_one_page_each(admin: httpx.AsyncClient) -> None:
    for _ in range(4):
        await admin.post("/v1/keys", json={"tenant": "a", "scopes": ["read"]})
    seen, cursor = [], None
    for _ in range(5):
        page = (await admin.get("/v1/keys", params={"limit": 1} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [key["id"] for key in page["items"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert len(set(seen)) == 5


@pytest.mark.parametrize("cursor", ["x", "W10", "bm90aGluZw", "WyIyMDI2LTA0LTAxVDEyOjAwOjAwWiIsMV0x"])
async def test_a_cursor_that_is_not_the_lists_is_a_422(admin: httpx.AsyncClient, cursor: str) -> None:
    answer = await admin.get("/v1/keys", params={"cursor": cursor})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["loc"] == ["query", "cursor"]


async def test_a_revoked_key_is_dead_at_once_and_listed_no_more(admin: httpx.AsyncClient) -> None:
    key = (await admin.post("/v1/keys", json={"tenant": "a", "scopes": ["read"]})).json()
    assert (await admin.get("/me", headers=bearer(key["key"]))).status_code == 200
    assert (await admin.delete(f"/v1/keys/{key['id']}")).status_code == 204
    assert (await admin.get("/me", headers=bearer(key["key"]))).status_code == 401
    assert key["id"] not in (await admin.get("/v1/keys")).text
    assert (await admin.delete(f"/v1/keys/{key['id']}")).status_code == 404


async def test_a_key_that_never_was_is_a_404(keyed_client: httpx.AsyncClient) -> None:
    answer = await keyed_client.delete("/v1/keys/3f9c2a7be014")
    assert (answer.status_code, answer.json()["code"]) == (404, "key_not_found")


@pytest.mark.parametrize("key_id", ["x", "3F9C2A7BE014", "%00", "3f9c2a7be0145"])
async def test_an_invalid_key_id_is_a_422(keyed_client: httpx.AsyncClient, key_id: str) -> None:
    assert (await keyed_client.delete(f"/v1/keys/{key_id}")).status_code == 422


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tenant", ""),
        ("tenant", "a" * 101),
        ("tenant", "a b"),
        ("tenant", "a\n"),
        ("tenant", "ü"),
        ("tenant", "\x00"),
        ("tenant", None),
        ("scopes", []),
        ("scopes", ["root"]),
        ("scopes", "read"),
        ("scopes", None),
        ("name", "unknown field"),
    ],
)
async def test_a_malformed_key_is_a_422_that_names_the_field(
    keyed_client: httpx.AsyncClient, field: str, value: Any
) -> None:
    answer = await keyed_client.post("/v1/keys", json=ADMIN | {field: value})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["loc"][:2] == ["body", field]


@pytest.mark.parametrize("tenant", ["a", "a" * 100, "Team-1_x@host:8.9"])
async def test_every_valid_tenant_name_is_accepted(keyed_client: httpx.AsyncClient, tenant: str) -> None:
    assert (await keyed_client.post("/v1/keys", json=ADMIN | {"tenant": tenant})).status_code == 201


@pytest.mark.parametrize("scopes", [["read"], ["write"], ["read", "write"]])
async def test_keys_are_for_admins_alone(
    database: Database, keyed_client: httpx.AsyncClient, scopes: list[str]
) -> None:
    headers = bearer((await made_key(database, *scopes)).text)
    for answer in (
        await keyed_client.get("/v1/keys", headers=headers),
        await keyed_client.post("/v1/keys", json=ADMIN, headers=headers),
        await keyed_client.delete("/v1/keys/3f9c2a7be014", headers=headers),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_each_scope_permits_only_its_own_methods(database: Database, keyed_client: httpx.AsyncClient) -> None:
    for scope, expected in (("read", (200, 403)), ("write", (403, 200))):
        headers = bearer((await made_key(database, scope)).text)
        answers = await keyed_client.get("/me", headers=headers), await keyed_client.post("/me", headers=headers)
        assert tuple(answer.status_code for answer in answers) == expected


async def test_without_keys_local_requests_may_do_everything(
    client: httpx.AsyncClient,
) -> None:
    me = (await client.get("/me")).json()
    assert (me["tenant"], me["scopes"]) == ("default", sorted(EVERYTHING))
    assert (await client.get("/v1/keys")).json() == {"items": [], "next_cursor": None}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "memobook.example"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
        {"Origin": "https://evil.example"},
    ],
)
async def test_without_keys_remote_requests_are_rejected(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for answer in (
        await client.get("/me", headers=headers),
        await client.post("/me", headers=headers),
        await client.post("/v1/keys", json=ADMIN, headers=headers),
        await client.post("/v1/tokens", json={"user_id": "m", "scopes": ["read"], "ttl_s": 1}, headers=headers),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "loopback_only")
        assert "memobook keys create" in answer.json()["detail"]


async def test_without_keys_no_host_header_admits_a_remote_request(service: FastAPI) -> None:
    async with client_of(service, peer="192.168.1.4") as client:
        assert (await client.get("/me")).status_code == 403


async def test_with_a_key_neither_host_nor_proxy_nor_peer_matters(fresh_database: Database, service: FastAPI) -> None:
    headers = bearer((await made_key(fresh_database)).text)
    headers |= {"Host": "memobook.example", "X-Forwarded-For": "1.2.3.4", "Origin": "https://chat.example"}
    async with client_of(service, peer="192.168.1.4") as client:
        assert (await client.get("/me", headers=headers)).status_code == 200


async def test_the_first_key_must_have_the_admin_scope(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.post("/v1/keys", json=ADMIN | {"scopes": ["read", "write"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "first_key_not_admin")
    assert (await client.get("/me")).status_code == 200


async def test_from_the_first_key_on_every_request_needs_one(client: httpx.AsyncClient) -> None:
    assert (await client.get("/me")).status_code == 200
    key = (await client.post("/v1/keys", json=ADMIN)).json()["key"]
    for answer in (
        await client.get("/me"),
        await client.post("/me"),
        await client.get("/v1/keys"),
        await client.post("/v1/keys", json=ADMIN),
        await client.delete("/v1/keys/3f9c2a7be014"),
        await client.post("/v1/tokens", json={"user_id": "m", "scopes": ["read"], "ttl_s": 1}),
    ):
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert (await client.get("/me", headers=bearer(key))).status_code == 200


async def test_a_trusted_page_may_call_while_no_key_exists(fresh_database: Database, clock: SteppedClock) -> None:
    app = service_on(fresh_database, clock, trusted_origins=["https://chat.example"])
    async with client_of(app) as client:
        assert (await client.get("/me", headers={"Origin": "https://chat.example"})).status_code == 200


async def test_each_body_has_an_example_and_each_field_a_description(client: httpx.AsyncClient) -> None:
    schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
    for name in ("KeyIn", "KeyOut", "NewKeyOut", "TokenIn", "TokenOut"):
        assert all("description" in field for field in schemas[name]["properties"].values()), name
    assert (await client.post("/v1/tokens", json=schemas["TokenIn"]["examples"][0])).status_code == 201
    assert (await client.post("/v1/keys", json=schemas["KeyIn"]["examples"][0])).status_code == 201
