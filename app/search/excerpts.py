"""The parts of long texts that are compared with a query, so that a search takes bounded time. Pure."""

from collections.abc import Iterable, Sequence

MOST_CHARS = 1_000_000
"""The most characters that are compared with a query, in all texts together."""

_GAP = "\n"  # between the parts of an excerpt, so that their words stay apart


def list_excerpts(texts: Sequence[str], patterns: Iterable[str]) -> list[str]:
    """Return the texts, those of which are too long as excerpts: together they have about MOST_CHARS at most.

    Args:
        texts: The texts.
        patterns: Substrings of words of the query (`list_patterns`). An excerpt has the beginning of the text and the
            surroundings of the first place of each.

    """
    share = share_chars(map(len, texts))
    patterns = list(patterns)
    return [one if len(one) <= share else _excerpt(one, share, patterns) for one in texts]


def share_chars(lengths: Iterable[int]) -> int:
    """Return how many characters of each text are compared; `lengths` are the characters of the texts.

    What short texts leave of their equal share, longer ones get. So only long texts among many long ones are cut.
    """
    left, ascending = MOST_CHARS, sorted(lengths)
    for at, length in enumerate(ascending):
        share = left // (len(ascending) - at)
        if length > share:
            return share
        left -= length
    return MOST_CHARS


def _excerpt(text: str, most: int, patterns: Sequence[str]) -> str:
    lowered = text.lower()
    places = {at for one in patterns if (at := lowered.find(one)) != -1}
    room = most // (len(places) + 1)
    parts = [(0, room)]
    for at in sorted(places):
        first, last = at - room // 2, at - room // 2 + room
        if first <= parts[-1][1]:
            parts[-1] = parts[-1][0], max(parts[-1][1], last)
        else:
            parts.append((first, last))
    return _GAP.join(text[first:last] for first, last in parts)
