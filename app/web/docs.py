"""The API explorer at `/docs` and its schema. Swagger UI is served by this application, so that it works offline.

All URLs on the page are relative, so the page also works below a path prefix of a proxy. The content security policy
prevents requests to other hosts.
"""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from swagger_ui_bundle import swagger_ui_path

from app.web.schema import Api

_BUNDLE: Path = swagger_ui_path
_ASSETS = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon-32x32.png": "image/png",
}
_UNSNIFFED = {"X-Content-Type-Options": "nosniff"}


def docs_router() -> APIRouter:
    """Return a router with the schema, the page and its three assets. The schema does not list these routes.

    The application must be an `Api` that is created with `docs_url=None` and `openapi_url=None`.
    """
    router = APIRouter(include_in_schema=False)
    assets = f"docs/assets/{_BUNDLE.name}"
    page = files("app.web").joinpath("explorer.html").read_text(encoding="utf-8").replace("{assets}", assets)
    headers = _UNSNIFFED | {
        "Cache-Control": "no-cache",
        "Content-Security-Policy": _security_policy(page),
        "Referrer-Policy": "no-referrer",
    }

    @router.get("/docs")
    async def explorer() -> HTMLResponse:
        return HTMLResponse(page, headers=headers)

    @router.get("/openapi.json")
    async def schema(request: Request) -> Response:
        app: Api = request.app
        return Response(app.rendered_schema, media_type="application/json")

    for name, media_type in _ASSETS.items():
        router.add_api_route(f"/{assets}/{name}", _asset(name, media_type))
    return router


def _asset(name: str, media_type: str) -> Callable[[], Awaitable[Response]]:
    """Return an endpoint for one file. Its URL contains the bundle's version, so it can be cached forever."""
    headers = _UNSNIFFED | {"Cache-Control": "public, max-age=31536000, immutable"}

    async def asset() -> Response:
        return Response(_read(name), media_type=media_type, headers=headers)

    return asset


@cache
def _read(name: str) -> bytes:
    """Return a file of the bundle. All answers share one copy of it, so unread answers need no further memory."""
    return (_BUNDLE / name).read_bytes()


def _security_policy(page: str) -> str:
    """Return a policy that allows only this host, images in `data:` URLs, and the page's inline script."""
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'sha256-{digest}'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
