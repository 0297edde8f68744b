"""Each path with an id or a name that may contain slashes has one meaning, whatever its other parts are called."""

import re
from collections.abc import Iterator
from itertools import product

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from app.main import list_routers
from app.registry import LAYERS
from tests.api.path_parameters import SCHEMA
from tests.facts.asking import set_fact
from tests.talk import ok, walk

PARAMETER = re.compile(r"{(\w+)(:\w+)?}")
ROUTES = [route for router in list_routers(LAYERS) for route in router.routes if isinstance(route, APIRoute)]
WITH_SLASHES = [route for route in ROUTES if any(converter for _, converter in PARAMETER.findall(route.path))]


def list_words(path: str) -> set[str]:
    """The fixed parts that follow a parameter in paths with the same beginning.

    Every one of them can also be a user's id, a character's name or a key.
    """
    begin = path.partition("{")[0]
    others = [route.path.removeprefix(begin) for route in WITH_SLASHES if route.path.startswith(begin)]
    return {part for other in others for part in other.split("/") if "{" not in part}


def fill(route: APIRoute) -> Iterator[dict[str, str]]:
    """Values for the parameters of a route: each of the fixed parts, and ids and names with a slash."""
    words = sorted(list_words(route.path))
    choices = [
        [*words, "mira", "a/b"] if converter else [*words, "brother"] for _, converter in PARAMETER.findall(route.path)
    ]
    names = [name for name, _ in PARAMETER.findall(route.path)]
    for values in product(*choices):
        yield dict(zip(names, values, strict=True))


def find_meant(method: str, path: str) -> tuple[str, dict[str, str]]:
    """The first route that serves a request, and its parameters."""
    for route in ROUTES:
        if method not in (route.methods or ()):
            continue
        match, found = route.matches({"type": "http", "method": method, "path": path, "root_path": ""})
        if match is Match.FULL:
            return route.path, found["path_params"]
    return "", {}


@pytest.mark.parametrize("route", WITH_SLASHES, ids=lambda route: f"{min(route.methods)} {route.path}")
def test_a_path_means_what_it_names(route: APIRoute) -> None:
    template = PARAMETER.sub(r"{\1}", route.path)
    assert route.methods
    (method,) = route.methods
    for values in fill(route):
        path = template.format(**values)
        assert find_meant(method, path) == (route.path, values), path


def test_the_routes_are_those_of_the_app() -> None:
    assert {PARAMETER.sub(r"{\1}", route.path) for route in WITH_SLASHES} <= set(SCHEMA["paths"])
    assert {"characters", "facts", "blocks", "memories", "history"} <= list_words("/v1/users/{user_id}")


@pytest.mark.parametrize(
    "under", ["/v1/users/mira", "/v1/users/mira/characters/Kai", "/v1/users/mira/characters/facts"]
)
async def test_a_fact_may_be_called_facts(api: httpx.AsyncClient, under: str) -> None:
    await set_fact(api, "facts", "She collects them.", under=under)
    assert ok(await api.get(f"{under}/facts/facts"), 200)["value"] == "She collects them."
    pages = await walk(api, f"{under}/facts/facts/history")
    assert [one["value"] for page in pages for one in page] == ["She collects them."]


@pytest.mark.parametrize("user", ["mira/facts", "mira/characters", "mira/characters/Kai"])
async def test_no_other_user_is_read(api: httpx.AsyncClient, user: str) -> None:
    search = await api.post(f"/v1/users/{user}/memories/search", json={"query": "x"})
    assert search.status_code in {404, 405}
