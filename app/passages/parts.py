"""The parts of a text that get a vector each. Pure."""

from collections.abc import Sequence

from app.kit.tokens import count_tokens

PART_TOKENS = 400
OVERLAP_TOKENS = 80
"""Long texts are divided into parts of at most PART_TOKENS tokens, of which neighbours share about OVERLAP_TOKENS.

Embedding models leave out what follows their limit, often 512 tokens, and a vector of a long text is vague.
"""

MAX_PARTS = 50
"""Of a text with more parts, only the first ones get vectors."""


def divide(text: str) -> Sequence[str]:
    """Return a text as its parts, at most MAX_PARTS; a part ends between words if it can."""
    tokens = count_tokens(text)
    if tokens <= PART_TOKENS:
        return [text]
    chars = max(1, len(text) * PART_TOKENS // tokens)
    step = max(1, chars * (PART_TOKENS - OVERLAP_TOKENS) // PART_TOKENS)
    parts: list[str] = []
    for first in range(0, len(text), step):
        begins = _find_space(text, first, step // 4)
        parts.append(text[begins : _find_space(text, first + chars, step // 4)].strip())
        if first + chars >= len(text) or len(parts) == MAX_PARTS:
            break
    return [part for part in parts if part]


def _find_space(text: str, at: int, most: int) -> int:
    """Return the place of the last space at or before `at`, not further than `most` characters; otherwise `at`."""
    if not 0 < at < len(text):
        return min(max(at, 0), len(text))
    found = text.rfind(" ", max(at - most, 0), at)
    return at if found < 0 else found
