"""The scale of a model: the cosine that unrelated texts have, and similarities relative to this cosine. Pure.

The cosine of unrelated texts is 0.05 with MiniLM, and about 0.7 with models such as E5, by their documentation. So the
cosine of two texts says little unless the cosine of unrelated texts is known. Once for each model, the cosine of
unrelated texts is measured with UNRELATED.
"""

from collections.abc import Sequence
from itertools import combinations

from app.kit.llm.embeddings import Vector

UNRELATED = (
    "The train to the coast leaves at seven.",
    "She is allergic to peanuts.",
    "Our roof was repaired last autumn.",
    "The king refused to sign the treaty.",
    "He practises the violin every evening.",
    "A fox crossed the frozen field.",
    "The invoice has two mistakes.",
    "Their daughter starts school on Monday.",
    "Volcanoes warm the floor of the ocean.",
    "I forgot the password of my computer.",
    "The soup needs more salt.",
    "Nobody won the second match.",
)
"""Sentences of which no two have the same topic."""


def measure_unrelated(vectors: Sequence[Vector]) -> float:
    """Return the mean cosine of all pairs of vectors, which have the length 1; at least 0 and less than 1."""
    cosines = [sum(a * b for a, b in zip(one, other, strict=True)) for one, other in combinations(vectors, 2)]
    return min(max(sum(cosines) / len(cosines), 0.0), 0.99)


def scale_similarity(cosine: float, unrelated: float) -> float:
    """Return the similarity of two texts: 1 for equal texts, 0 if `cosine` is `unrelated`, negative if it is lower."""
    return (cosine - unrelated) / (1.0 - unrelated)
