"""Parse the quoted parts of a request's user text. Pure."""

import json
import re

from tests.golden.script import Json


def read_text(request: str, tag: str) -> str:
    """Return the text quoted between two tags."""
    return str(json.loads(_between(request, tag)))


def read_lines(request: str, tag: str) -> list[Json]:
    """Return the objects quoted between two tags, one a line."""
    return [json.loads(line) for line in _between(request, tag).splitlines()]


def _between(request: str, tag: str) -> str:
    found = re.search(rf"^<{tag}>\n(.*?)\n</{tag}>$", request, re.M | re.S)
    if found is None:
        raise ValueError(f"the request has no {tag}")
    return found[1]
