"""Finds texts that are too short for what they are made from, and texts that end within a sentence. Pure."""

import re
from collections.abc import Sequence

from app.kit.refusals import Refusal
from app.summarising.judging.speech import count_letters

LONG_FORMER_CHARS = 300
"""A former text that is not longer than this may be replaced by any text."""

MUCH_MATERIAL_LETTERS = 1_000

_MATERIAL_PER_LETTER = 100
_MOST_LEAST_LETTERS = 60
"""An answer should have at least a hundredth as many letters as its material; this number is always enough."""

_MIN_UNFINISHED_CHARS = 200
_UNFINISHED = re.compile(r"[\w,;:(–—-]$")
_STOPS = re.compile(r"[.!?。！？]")

_TOO_SHORT = Refusal("form", "the answer is too short to tell what happened")
_SHORT = Refusal("form", "the answer is very short for so many messages", once=True)


def find_shortness(text: str, material: Sequence[str], min_letters: int) -> Refusal | None:
    """Return a refusal if `text` is far too short for the texts in `material`.

    The limits are low, because a few words can sum up a calm conversation. `min_letters` is the least number of letters
    of a text about much material; with 0, any length is accepted.
    """
    about = sum(map(count_letters, material)) if min_letters else 0
    if about < MUCH_MATERIAL_LETTERS:
        return None
    if count_letters(text) < min_letters:
        return _TOO_SHORT
    least = min(about // _MATERIAL_PER_LETTER, _MOST_LEAST_LETTERS)
    return _SHORT if sum(map(str.isalnum, text)) < least else None  # dates and numbers say something, too


def find_shrinking(text: str, former: str) -> Refusal | None:
    """Return a refusal if `text` is much shorter than a long former text."""
    if len(former) <= LONG_FORMER_CHARS or not is_shorter(text, former):
        return None
    return Refusal("shrunk", "the answer keeps less than half of the former text", once=True)


def is_shorter(text: str, former: str) -> bool:
    """Whether `text` is less than half as long as `former`."""
    return 2 * len(text) < len(former)


def find_unfinished(text: str) -> Refusal | None:
    """Return a refusal if `text` ends within a sentence although it marks the ends of its other sentences."""
    marks_ends = len(_STOPS.findall(text)) >= 2 and not re.search(r"[\u0e00-\u0e7f]$", text)
    if len(text) < _MIN_UNFINISHED_CHARS or not marks_ends or not _UNFINISHED.search(text):
        return None
    return Refusal("unfinished", "the answer ends in the middle of a sentence", once=True)
