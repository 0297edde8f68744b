"""Chooses, of the many texts of a scope, those that can matter when new sentences are compared with them. Pure.

`dedupe.compare` computes all groups of letters of each text that it is given. Here, a cheaper check comes first. For
each word of a text, it looks up how many groups the word and a sentence have in common, and adds these numbers up: the
text and the sentence cannot have more groups in common than this sum. The texts of a scope have few different words,
and the numbers for a word are computed only once. A text without spaces is one word.
"""

import math
import unicodedata
from collections.abc import Sequence
from typing import Final

from app.knowledge.known import fold
from app.memories.dedupe import find_groups, list_groups, share

_BITS: Final = 32
"""The bits of a count. The counts for all sentences are packed into one integer, and are added and compared at once."""

_TOP: Final = 1 << (_BITS - 1)
"""The highest bit of a count, which no count reaches by itself."""

_LONGEST_KEPT: Final = 30
"""The length of the longest words whose counts are kept, in characters."""

_SLACK: Final = 1 - 1e-9
"""Keeps a rounded product from exceeding the exact one."""


class Candidates:
    """Recognises the texts that are equal or similar to a new sentence, in the sense of `dedupe.compare`."""

    def __init__(self, contents: Sequence[str], threshold: float) -> None:
        """Prepare for the new sentences `contents`. A text is similar if its similarity is above `threshold`."""
        self._folded = {fold(content) for content in contents}
        self._groups = [find_groups(content) for content in contents]
        self._threshold = threshold
        self._shared_by = _SharedBy(self._groups)
        # `_missing` is added to the counts: this sets the highest bit of each count that is at least its `least`.
        least = [max(1, math.ceil(threshold * len(groups) * _SLACK)) for groups in self._groups]
        self._missing = sum((_TOP - one) << _BITS * number for number, one in enumerate(least))
        self._tops = sum(_TOP << _BITS * number for number in range(len(least)))

    def is_equal(self, text: str) -> bool:
        """Return whether a sentence equals the text, but for case, white space and compatibility forms."""
        return fold(text) in self._folded

    def has(self, text: str) -> bool:
        """Return whether the text equals a sentence, or is more similar to one than the threshold."""
        shared_by, words = self._shared_by, unicodedata.normalize("NFKC", text).lower().split()
        if sum([shared_by[word] for word in words]) + self._missing & self._tops:
            found = find_groups(text)
            if any(share(groups, found) > self._threshold for groups in self._groups):
                return True
        return (" ".join(words) if text.isascii() else fold(text)) in self._folded


class _SharedBy(dict[str, int]):
    """Maps a part of a text to the numbers of groups that it has in common with the sentences, in one integer.

    A text is split into parts at white space. The number for the first sentence is in the lowest bits. Groups are
    taken from single words (`list_groups`), which contain no white space, so each group of a text is a group of one of
    its parts. Long parts are not kept: in scripts without spaces, a part is a whole text.
    """

    def __init__(self, sentences: Sequence[frozenset[str]]) -> None:
        super().__init__()
        self._by_group: dict[str, int] = {}
        for number, groups in enumerate(sentences):
            for group in groups:
                self._by_group[group] = self._by_group.get(group, 0) + (1 << _BITS * number)

    def __missing__(self, part: str) -> int:
        by_group = self._by_group
        found = sum([by_group[group] for group in set(list_groups(part)) if group in by_group])
        if len(part) <= _LONGEST_KEPT:
            self[part] = found
        return found
