"""Vectors: their length, and how PostgreSQL reads them. Pure."""

import math
from collections.abc import Iterable, Sequence

from app.kit.llm.embeddings import Vector

_DIGITS = 9
"""This many significant digits distinguish all floats of 32 bits. pgvector then rounds the numbers to 16 bits."""


def normalise(numbers: Sequence[float]) -> Vector:
    """Return the vector of length 1 in the direction of `numbers`; all zeros if it has no direction.

    Raises ValueError if a number, or the length, is not finite.
    """
    length = math.hypot(*numbers)
    if not math.isfinite(length):
        raise ValueError("the vector has no finite length")
    return [number / length for number in numbers] if length else [0.0] * len(numbers)


def format_halfvec(vector: Iterable[float]) -> str:
    """Return the vector as text for a cast to pgvector's `halfvec`, which rounds to 16 bits: `[0.6,-0.8]`."""
    return f"[{','.join(f'{number:.{_DIGITS}g}' for number in vector)}]"
