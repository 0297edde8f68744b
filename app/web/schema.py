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

TAG_DESCRIPTIONS = {
    "chats": "A chat is a conversation of one user with one or more characters. Its settings begin as those of a "
    "preset.",
    "messages": "Messages can be edited, hidden, pinned, deleted and given swipes. Generated memories of changed "
    "messages are made again.",
    "lines": "A chat has one current line, and keeps former ones. A checkpoint is a frozen copy of a line, a fork is a"
    " copy in a new chat, and a session is a stretch of a line that ends, for example, with a long pause.",
    "context": "The input of the next model call. A report shows how it includes each message, or why it does not.",
    "memo book": "The memo book contains all memos of a chat in story order. A memo is two or three highlights of one"
    " batch, or a text that a person wrote.",
    "narratives": "Longer texts: the summary of a chat, the diaries of its characters, the recaps of its scenes, and"
    " the running recap. The summary and the running recap grow by folds and keep their versions.",
    "knowledge": "What is known in each scope: facts (values by key), core blocks (short texts that are always in the "
    "context) and memories (single sentences). A search also finds messages and other texts.",
    "tools": "The tools that you offer to the model that plays a character, so that it can search the memory and write"
    " into it. What a call writes belongs to a reply. If the reply is deleted, hidden or given another text, contexts"
    " no longer contain what the call wrote.",
    "keys": "A key is for servers, and belongs to one tenant. A token is for browsers: it expires soon, and is limited"
    " to a user, to a chat, or to both.",
    "operations": "The health of the service, its background work, and its usage of the model.",
}
"""What the operations of each tag are about. `/docs` shows these texts above the operations."""

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
            schema["tags"] = [_describe_tag(tag) for tag in self._tags]
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
        """The schema as JSON, rendered only once, because any client can request it, without a key, again and again."""
        return orjson.dumps(self.openapi())

    def _position(self, path: tuple[str, dict[str, Any]]) -> int:
        """Return the position of a path among the others, by the tag of its first operation."""
        tag = next(iter(path[1].values()))["tags"][0]
        return self._tags.index(tag) if tag in self._tags else len(self._tags)


def _describe_tag(tag: str) -> dict[str, str]:
    """Return the tag as the schema lists it."""
    described = TAG_DESCRIPTIONS.get(tag)
    return {"name": tag} if described is None else {"name": tag, "description": described}


def _name_media_type(responses: dict[str, Any]) -> None:
    """Document problems as `application/problem+json`; FastAPI gives all responses of a route the same media type."""
    for response in responses.values():
        content = response.get("content", {})
        if content.get("application/json", {}).get("schema") == _PROBLEM:
            response["content"] = {"application/problem+json": content["application/json"]}


def _made_up_summary(name: str) -> str:
    """Return the summary that FastAPI makes from the name of a route without a summary."""
    return name.replace("_", " ").title()


def _first_sentence(text: str) -> str:
    """Return the first sentence without its full stop, for use as a heading."""
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]
