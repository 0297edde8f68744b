"""Parsing of responses to `POST /embeddings`. Pure.

The reasons of errors are fixed texts that never quote the server.
"""

from typing import Any

from app.embeddings.vectors import normalise
from app.kit.llm.answer import ModelError, read_answer, read_tokens
from app.kit.llm.embeddings import Embeddings, Vector


def read_embeddings(body: bytes, *, texts: int) -> Embeddings:
    """Return the normalised vectors in the body of a 2xx response; the request had `texts` texts, one or more.

    Raises ModelError unless there is one vector for each text, and all have the same length.
    """
    answer = read_answer(body)
    vectors = [_read_vector(item) for item in _sort(answer.get("data"))]
    if len(vectors) != texts:
        raise ModelError("the model server does not answer one vector for each text", transient=False)
    if len({len(vector) for vector in vectors}) > 1:
        raise ModelError("the model server answers vectors of several lengths", transient=False)
    usage = answer.get("usage")
    return Embeddings(vectors, read_tokens(usage.get("prompt_tokens")) if isinstance(usage, dict) else None)


def _sort(data: object) -> list[dict[str, Any]]:
    """Return the items in the order of their texts: by `index` if each has one, otherwise as they are."""
    items = [item if isinstance(item, dict) else {} for item in data] if isinstance(data, list) else []
    if all(type(item.get("index")) is int for item in items):
        items.sort(key=lambda item: int(item["index"]))
    return items


def _read_vector(item: dict[str, Any]) -> Vector:
    numbers = item.get("embedding")
    if not isinstance(numbers, list) or not numbers or not all(type(number) in (float, int) for number in numbers):
        raise ModelError("the model server answers something that is not a vector", transient=False)
    try:
        return normalise(numbers)
    except (ValueError, OverflowError):
        raise ModelError("the model server answers a vector that is not finite", transient=False) from None
