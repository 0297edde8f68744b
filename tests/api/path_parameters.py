"""The URLs of operations on a chat: what a parameter of a path can be follows from the list above it."""

import re
from collections.abc import Mapping
from typing import Any

import httpx
from fastapi.routing import APIRoute

from app.kit.settings import Settings
from app.layers.layer import Layer
from app.main import create_app
from app.registry import LAYERS
from tests.layers.samples import SAMPLES
from tests.talk import Json, ok

APP = create_app(Settings(database_url="postgresql://nowhere/", _env_file=None))
SCHEMA: Json = APP.openapi()
CHAT = "/v1/chats/{chat_id}"
CHARACTER = "Kai"
"""The character of the chat whose paths are filled in."""


def list_operations(layer: Layer) -> set[str]:
    """The operations of a layer's routers: `GET /v1/…`."""
    routes = [route for router in layer.routers for route in router.routes if isinstance(route, APIRoute)]
    return {f"{method} {route.path}" for route in routes for method in route.methods or ()}


# A path of the schema has no converters: `{user_id}`, not `{user_id:owner}`.
_LAYER_OF = {
    re.sub(r":\w+}", "}", operation.partition(" ")[2]): layer.name
    for layer in LAYERS
    for operation in list_operations(layer)
}


def find_layer_of(path: str) -> str | None:
    """The layer that serves a path of the schema."""
    return _LAYER_OF.get(path)


def is_listed(path: str, parameter: str) -> bool:
    """Whether what a parameter of a path can be is listed right above it."""
    listed_at = _list_above(path, parameter).replace(":path}", "}").replace(":owner}", "}")
    return "get" in SCHEMA["paths"].get(listed_at, {})


def find_lists() -> dict[str, str]:
    """The lists of a chat whose items can be read alone, below the chat, each with the parameter of its items."""
    found = re.compile(rf"{re.escape(CHAT)}(/.+)/{{(\w+)}}")
    singles = [
        match for path, methods in SCHEMA["paths"].items() if "get" in methods if (match := found.fullmatch(path))
    ]
    return {match[1]: match[2] for match in singles if is_listed(match[0], match[2])}


def name_of(item: Json, parameter: str) -> Any:
    """By what an item of a list is named in the path that reads it alone."""
    return item[parameter] if parameter in item else item["id"]


async def fill_path(api: httpx.AsyncClient, path: str, operation: Json, known: Mapping[str, str]) -> str:
    """The path of an operation with a value for each parameter: known, given by its layer's sample, or listed."""
    values = dict(known)
    if "/characters/{name}" in path:
        values["name"] = CHARACTER
    if layer := find_layer_of(path):
        values |= SAMPLES[layer].path_parameters
        if prepare := SAMPLES[layer].before.get(operation["operationId"]):
            values |= await prepare(api, CHAT.format(**known))
    for parameter in re.findall(r"{(\w+)}", path):
        if parameter not in values:
            listed_at = _list_above(path, parameter)
            names = [name_of(item, parameter) for item in ok(await api.get(listed_at.format(**values)), 200)["items"]]
            present = [name for name in names if name is not None]  # the open scene has no id
            assert present, f"`settings` or `write` of the sample of {layer} leaves {listed_at} empty"
            # A forked line is the last one. The current line, which the example switches to, cannot be deleted.
            is_old = parameter == "line" and operation["operationId"] != "delete_line"
            values[parameter] = present[-1] if is_old else present[0]
    return path.format(**values)


def _list_above(path: str, parameter: str) -> str:
    return path.partition(f"/{{{parameter}}}")[0]
