"""The application's schema, as `/docs` shows it to a person."""

import re
from typing import Any

from fastapi import FastAPI

from app.kit.auth import bearer

READING_ORDER = ("chats", "messages", "lines", "context", "memo book", "narratives", "tools", "keys", "operations")
"""Tags, as one meets them: the order of the routers is that of how often they are asked."""


class Api(FastAPI):
    """Its schema stands in reading order, sums operations up in words, and says which need a key.

    Dependencies that say so would cost every request.
    """

    def openapi(self) -> dict[str, Any]:
        """The schema; made once."""
        if self.openapi_schema is None:
            schema = super().openapi()
            scheme = bearer.model.model_dump(mode="json", by_alias=True, exclude_none=True)
            schema["components"]["securitySchemes"] = {bearer.scheme_name: scheme}
            schema["tags"] = [{"name": tag} for tag in READING_ORDER]
            schema["paths"] = dict(sorted(schema["paths"].items(), key=_place))
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    operation["summary"] = _first_sentence(operation["description"])
                    if path.startswith("/v1/"):
                        operation["security"] = [{bearer.scheme_name: []}]
        return super().openapi()


def _place(path: tuple[str, dict[str, Any]]) -> int:
    """Where the first operation of a path stands; what has no place yet comes last."""
    tag = next(iter(path[1].values()))["tags"][0]
    return READING_ORDER.index(tag) if tag in READING_ORDER else len(READING_ORDER)


def _first_sentence(text: str) -> str:
    """Without its full stop, as a heading has none."""
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]
