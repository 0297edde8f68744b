import re
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from swagger_ui_bundle import swagger_ui_path

from app.web.docs import docs_router


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    app = FastAPI(docs_url=None, redoc_url=None)
    app.include_router(docs_router())
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        yield client


def _references(page: str) -> list[str]:
    return re.findall(r'(?:href|src)="([^"]+)"', page)


async def test_the_page_and_its_assets_are_served_locally(client: AsyncClient) -> None:
    page = await client.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "//" not in page.text
    references = _references(page.text)
    assert {reference.rpartition("/")[2] for reference in references} == {
        "favicon-32x32.png",
        "swagger-ui.css",
        "swagger-ui-bundle.js",
    }
    for reference in references:
        asset = await client.get(f"/{reference}")
        assert asset.content == (swagger_ui_path / reference.rpartition("/")[2]).read_bytes()


async def test_references_are_relative_for_path_prefixes(client: AsyncClient) -> None:
    page = (await client.get("/docs")).text
    assert not any(reference.startswith("/") for reference in _references(page))
    assert 'url: "openapi.json"' in page


async def test_the_policy_admits_the_inline_script_by_its_hash_alone(
    client: AsyncClient,
) -> None:
    page = await client.get("/docs")
    inline = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    assert len(inline) == 1
    digest = b64encode(sha256(inline[0].encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_assets_are_cached_and_the_page_is_revalidated(client: AsyncClient) -> None:
    page = await client.get("/docs")
    assert page.headers["cache-control"] == "no-cache"
    for reference in _references(page.text):
        assert swagger_ui_path.name in reference
        asset = await client.get(f"/{reference}")
        assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert asset.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("swagger-ui-bundle.js", "text/javascript"),
        ("swagger-ui.css", "text/css"),
        ("favicon-32x32.png", "image/png"),
    ],
)
async def test_assets_say_their_type(client: AsyncClient, name: str, media_type: str) -> None:
    asset = await client.get(f"/docs/assets/{swagger_ui_path.name}/{name}")
    assert asset.headers["content-type"].partition(";")[0] == media_type


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "swagger-ui-bundle.js.map",
        "../__init__.py",
        "..%2f..%2f__init__.py",
        "%2e%2e/%2e%2e/__init__.py",
        "%2fetc%2fpasswd",
        "",
    ],
)
async def test_no_other_file_can_be_reached(client: AsyncClient, path: str) -> None:
    assert (await client.get(f"/docs/assets/{swagger_ui_path.name}/{path}")).status_code == 404


async def test_the_explorer_supports_openapi_3_1_and_is_not_listed(
    client: AsyncClient,
) -> None:
    schema = (await client.get("/openapi.json")).json()
    assert schema["paths"] == {}
    assert schema["openapi"].startswith("3.1.")
    major = re.fullmatch(r"swagger-ui-(\d+)\..*", swagger_ui_path.name)
    assert major is not None
    assert int(major[1]) >= 5, "before Swagger UI 5 the page says that it cannot render OpenAPI 3.1"
