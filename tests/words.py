"""Messages with a unique word each, so that the words of a text show which messages it covers."""

import re

import httpx

from tests.talk import Json, context, said


def words(first: int, last: int) -> list[Json]:
    """The messages `first…last`."""
    return [said(n, content=f"lamp w{n}w") for n in range(first, last + 1)]


async def segment_words(api: httpx.AsyncClient, name: str) -> list[str]:
    """The words of a segment."""
    found = [one["text"] for one in (await context(api))["segments"] if one["name"] == name]
    return re.findall(r"w\d+w", " ".join(found))


def numbers(first: int, last: int) -> list[int]:
    """Return the numbers `first…last`."""
    return list(range(first, last + 1))


def numbers_in(text: str) -> list[int]:
    """Return the numbers of the messages that a text covers, in its order."""
    return [int(n) for n in re.findall(r"#(\d+)", text)]
