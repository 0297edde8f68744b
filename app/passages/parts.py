"""The parts of a text that get a vector each. Pure."""

from collections.abc import Sequence

from app.kit.tokens import count_tokens

PART_TOKENS = 400
OVERLAP_TOKENS = 80
"""Long texts are divided into parts of at most PART_TOKENS tokens. Neighbouring parts share about OVERLAP_TOKENS.

Embedding models leave out what follows their limit, often 512 tokens, and a vector of a long text is vague.
"""

MAX_PARTS = 50
"""If a text has more parts, only the first ones get vectors."""


def divide(text: str) -> Sequence[str]:
    """Return a text as its parts, at most MAX_PARTS; a part ends between words if possible."""
    tokens = count_tokens(text)
    if tokens <= PART_TOKENS:
        return [text]
    chars = max(1, len(text) * PART_TOKENS // tokens)
    parts: list[str] = []
    first = last = 0
    while last < len(text) and len(parts) < MAX_PARTS:
        last = _find_end(text, first, chars)
        parts.append(text[first:last].strip())
        length = last - first
        first = _find_space(text, last - length * OVERLAP_TOKENS // PART_TOKENS, length // 4)
    return [part for part in parts if part]


def _find_end(text: str, first: int, chars: int) -> int:
    """Return the end of a part of at most PART_TOKENS tokens. It has about `chars` characters, or fewer.

    Some scripts have more tokens for each character than others, so a length that is right on average can be too much.
    """
    while True:
        last = _find_space(text, first + chars, chars // 4)
        tokens = count_tokens(text[first:last].strip())
        if tokens <= PART_TOKENS or chars == 1:
            return last
        chars = max(1, min(chars * PART_TOKENS // tokens, chars * 9 // 10))


def _find_space(text: str, at: int, most: int) -> int:
    """Return the index of the last space in the `most` characters before `at`; `at` if there is no space."""
    if not 0 < at < len(text):
        return min(max(at, 0), len(text))
    found = text.rfind(" ", max(at - most, 0), at)
    return at if found < 0 else found
