"""The answer of an embedding model. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

Vector = Sequence[float]
"""A vector with the Euclidean norm 1, or all zeros. So the inner product of two vectors is their cosine."""


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The vectors of some texts.

    Attributes:
        vectors: One vector for each text, in the order of the texts. If the model returns only zeros for a text, the
            vector is all zeros; its similarity with every other vector is 0.
        tokens: The tokens that the call used, as counted by the server, or None if the server counted none.

    """

    vectors: list[Vector]
    tokens: int | None = None
