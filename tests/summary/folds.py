"""Folds as tests see them: a model that remembers each message by its number, and how far the summary has come."""

import json
import re
from typing import Any

import httpx

from tests.scripted_model import Request
from tests.talk import context, get
from tests.words import numbers_in

OWN_FOLDS = {
    "history": {"keep_messages": 15, "grow_messages": 5, "edges": "folds"},
    "memos": {"enabled": False},
    "summary": {"enabled": True},
}
"""The summary as the preset `diary` has it, without the diary."""


def counting_fold(request: Request) -> str:
    """Return a summary that lists the numbers of its messages: the former ones and the new ones."""
    content = str(request["messages"][-1]["content"])
    former = re.search(r"<former>\n(.*)\n</former>", content)
    known = numbers_in(json.loads(former.group(1))) if former else []
    new = [int(n) for n in re.findall(r"lamp number (\d+)", content)]
    return "They spoke of " + " ".join(f"#{n}" for n in [*known, *new]) + "."


async def shown(api: httpx.AsyncClient) -> list[int]:
    """Return the messages that the summary in the context covers."""
    found: list[dict[str, Any]] = (await context(api))["segments"]
    return [n for segment in found if segment["name"] == "summary" for n in numbers_in(segment["text"])]


async def anchor(api: httpx.AsyncClient) -> int:
    """Where the history begins."""
    seq: int = (await context(api))["history"]["anchor_seq"]
    return seq


async def gaps(api: httpx.AsyncClient) -> list[list[int]]:
    """Return the gaps before the history."""
    found: list[list[int]] = (await context(api))["memo_window"]["gaps"]
    return found


async def versions(api: httpx.AsyncClient) -> list[tuple[int, int | None, bool]]:
    """(version, last_seq, stale) of all versions, newest first."""
    return [(one["version"], one["last_seq"], one["stale"]) for one in (await get(api, "/summary/versions"))["items"]]
