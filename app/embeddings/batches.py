"""Dividing texts into requests. Pure."""

from collections.abc import Iterator, Sequence

MAX_CHARS = 100_000
"""The maximum number of characters of a request with several texts, because servers limit the tokens of a request."""


def split_texts(texts: Sequence[str], *, max_texts: int, max_chars: int = MAX_CHARS) -> Iterator[Sequence[str]]:
    """Yield all texts in their order, in batches of at most `max_texts` texts and `max_chars` characters.

    A text of more than `max_chars` characters is a batch of its own.
    """
    first = chars = 0
    for index, text in enumerate(texts):
        if index > first and (index - first == max_texts or chars + len(text) > max_chars):
            yield texts[first:index]
            first, chars = index, 0
        chars += len(text)
    if first < len(texts):
        yield texts[first:]
