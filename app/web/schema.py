"""The OpenAPI schema of the application, arranged for readers of `/docs`."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI

from app.kit.auth import bearer

_FIRST = ("chats", "messages", "lines", "context")
_LAST = ("tools", "keys", "operations")
_PROBLEM = {"$ref": "#/components/schemas/Problem"}


def reading_order(routers: Sequence[APIRouter]) -> list[str]:
    """Return the tags of all routers in the order of `/docs`, with those of the layers in the middle."""
    of_layers = [str(tag) for router in routers for tag in router.tags if tag not in (*_FIRST, *_LAST)]
    return list(dict.fromkeys([*_FIRST, *of_layers, *_LAST]))


class Api(FastAPI):
    """A FastAPI application whose schema is in reading order, has summaries, and declares which operations need a key.

    Security dependencies of the routes would declare the same, but would slow down every request.
    """

    def __init__(self, *, tags: Sequence[str], **options: Any) -> None:
        super().__init__(**options)
        self._tags = tags

    def openapi(self) -> dict[str, Any]:
        """Return the schema, which is built once."""
        if self.openapi_schema is None:
            schema = super().openapi()
            scheme = bearer.model.model_dump(mode="json", by_alias=True, exclude_none=True)
            schema["components"]["securitySchemes"] = {bearer.scheme_name: scheme}
            schema["tags"] = [{"name": tag} for tag in self._tags]
            schema["paths"] = dict(sorted(schema["paths"].items(), key=self._position))
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    _name_media_type(operation["responses"])
                    if operation["summary"] == _made_up_summary(operation["operationId"]):
                        operation["summary"] = _first_sentence(operation["description"])
                    if path.startswith("/v1/"):
                        operation["security"] = [{bearer.scheme_name: []}]
        return super().openapi()

    @cached_property
    def rendered_schema(self) -> bytes:
        """The schema as JSON, rendered once: it needs no key, so a client may ask for it again and again."""
        return orjson.dumps(self.openapi())

    def _position(self, path: tuple[str, dict[str, Any]]) -> int:
        """Return the position of a path among the others, by the tag of its first operation."""
        tag = next(iter(path[1].values()))["tags"][0]
        return self._tags.index(tag) if tag in self._tags else len(self._tags)


def _name_media_type(responses: dict[str, Any]) -> None:
    """Document problems as `application/problem+json`; FastAPI gives all responses of a route the same media type."""
    for response in responses.values():
        content = response.get("content", {})
        if content.get("application/json", {}).get("schema") == _PROBLEM:
            response["content"] = {"application/problem+json": content["application/json"]}


def _made_up_summary(name: str) -> str:
    """Return the summary that FastAPI gives to a route of that name which has none of its own."""
    return name.replace("_", " ").title()


def _first_sentence(text: str) -> str:
    """Return the first sentence without its full stop, for use as a heading."""
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]
