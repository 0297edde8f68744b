"""The application's schema, as `/docs` shows it to a person."""

import re
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, FastAPI

from app.kit.auth import bearer

_FIRST = ("chats", "messages", "lines", "context")
_LAST = ("tools", "keys", "operations")


def reading_order(routers: Sequence[APIRouter]) -> list[str]:
    """The tags of all routers in the order in which a reader meets them, those of the layers in the middle."""
    of_layers = [str(tag) for router in routers for tag in router.tags if tag not in (*_FIRST, *_LAST)]
    return list(dict.fromkeys([*_FIRST, *of_layers, *_LAST]))


class Api(FastAPI):
    """Its schema stands in reading order, sums operations up in words, and says which need a key.

    Dependencies that say so would cost every request.
    """

    def __init__(self, *, tags: Sequence[str], **options: Any) -> None:
        super().__init__(**options)
        self._tags = tags

    def openapi(self) -> dict[str, Any]:
        """The schema; made once."""
        if self.openapi_schema is None:
            schema = super().openapi()
            scheme = bearer.model.model_dump(mode="json", by_alias=True, exclude_none=True)
            schema["components"]["securitySchemes"] = {bearer.scheme_name: scheme}
            schema["tags"] = [{"name": tag} for tag in self._tags]
            schema["paths"] = dict(sorted(schema["paths"].items(), key=self._position))
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    operation["summary"] = _first_sentence(operation["description"])
                    if path.startswith("/v1/"):
                        operation["security"] = [{bearer.scheme_name: []}]
        return super().openapi()

    def _position(self, path: tuple[str, dict[str, Any]]) -> int:
        """The position of a path among the others, by the tag of its first operation."""
        tag = next(iter(path[1].values()))["tags"][0]
        return self._tags.index(tag) if tag in self._tags else len(self._tags)


def _first_sentence(text: str) -> str:
    """Without its full stop, as a heading has none."""
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]
