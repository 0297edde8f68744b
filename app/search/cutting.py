"""How much of each text is compared with a query, so that a search takes bounded time. Pure."""

from collections.abc import Sequence

MOST_CHARS = 2_000_000
"""The most characters that are compared with a query, in all texts together."""


def cut_texts(texts: Sequence[str]) -> list[str]:
    """Return the beginnings of texts: at most MOST_CHARS in all of them together.

    What short texts leave of their equal share, longer ones get. So only long texts among many long ones are cut.
    """
    left, share = MOST_CHARS, MOST_CHARS
    ascending = sorted(map(len, texts))
    for at, length in enumerate(ascending):
        share = left // (len(ascending) - at)
        if length > share:
            break
        left -= length
    else:
        return list(texts)
    return [one[:share] for one in texts]
