"""A client that uses the running service as a frontend does."""

from collections.abc import Mapping
from typing import Any

import httpx

from app.demo.errors import DemoError


class Api:
    """A client for the service's API. Methods raise DemoError if the service rejects a request or does not respond.

    Args:
        client: An HTTP client with the service's base URL and, if one is needed, a key.

    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def get(self, path: str, **query: str | int) -> Any:
        """Return the resource at `path`."""
        return self._read(await self._send("GET", path, params=query))

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create or change the resource at `path` and return it."""
        return self._read(await self._send("PUT", path, json=body))

    async def post(self, path: str, body: Mapping[str, Any], **query: str) -> Any:
        """Post `body` to `path` and return the result."""
        return self._read(await self._send("POST", path, json=body, params=query))

    async def exists(self, path: str) -> bool:
        """Return whether there is a resource at `path`."""
        answer = await self._send("GET", path)
        return answer.status_code != httpx.codes.NOT_FOUND and bool(self._read(answer))

    async def get_all(self, path: str, **query: Any) -> list[Any]:
        """Return all items of a list, reading it page by page."""
        page = await self.get(path, limit=500, **query)
        items: list[Any] = page["items"]
        while page["next_cursor"]:
            page = await self.get(path, limit=500, cursor=page["next_cursor"], **query)
            items += page["items"]
        return items

    async def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        try:
            return await self._client.request(method, path, **content)
        except httpx.HTTPError as error:
            raise DemoError(f"{method} {path}: no answer ({type(error).__name__})") from None

    def _read(self, answer: httpx.Response) -> Any:
        if answer.is_success:
            return answer.json()
        request, is_problem = answer.request, answer.headers.get("content-type") == "application/problem+json"
        why = answer.json()["detail"] if is_problem else answer.reason_phrase
        raise DemoError(f"{request.method} {request.url.path}: {answer.status_code}, {why}")
