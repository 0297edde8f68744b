"""Compares the script and the language of an answer with those of its material. Pure."""

from collections.abc import Callable, Sequence

from app.kit.refusals import Refusal
from app.summarising.judging.scripts import find_script_fault, select_main_script
from app.summarising.judging.speech import count_letters, divide

Identify = Callable[[str], str | None]
"""text → the ISO 639 code of its language, or None if that is uncertain."""

MIN_LANGUAGE_LETTERS = 200
"""Languages are compared only if both texts have at least this many letters."""

_MIN_VOTE_LETTERS = 80
_MOST_VOTES = 40
_ALIKE = (
    *(frozenset(alike) for alike in (("da", "no", "nb", "nn", "sv"), ("hr", "bs", "sr", "sl"), ("id", "ms", "jv"))),
    *(frozenset(alike) for alike in (("cs", "sk"), ("pt", "gl", "es"), ("ca", "es", "oc", "an"), ("nl", "af", "fy"))),
    *(frozenset(alike) for alike in (("bg", "mk", "ru"), ("uk", "be", "ru"), ("hi", "ne", "mr"), ("de", "lb"))),
    *(frozenset(alike) for alike in (("zh", "yue", "wuu"), ("az", "tr", "tk"), ("it", "vec", "lij"), ("en", "pcm"))),
)
"""Languages that are confused easily; an answer in one of them is accepted for any other of its group."""


def find_language_fault(text: str, sources: Sequence[str], asked: str | None, identify: Identify) -> Refusal | None:
    """Return a refusal if the script or language of `text` is neither that of `sources` nor the one asked for.

    `asked` is the first part of a language tag; "" if the language was given by its name; None if the language of
    `sources` is wanted.
    """
    if fault := find_script_fault(text, sources, asked):
        return fault
    parts = select_main_script(text, sources).split("\n")
    whole = "\n".join(parts)
    if asked == "" or min(count_letters(text), count_letters(whole)) < MIN_LANGUAGE_LETTERS:
        return None
    narration = divide(text).narration
    found = identify(narration if count_letters(narration) >= MIN_LANGUAGE_LETTERS else text)
    if found is None or are_alike(found, asked):
        return None
    longest = sorted(parts, key=len, reverse=True)[:_MOST_VOTES]
    votes = [whole, *(part for part in longest if count_letters(part) >= _MIN_VOTE_LETTERS)]
    known = [identify(vote) for vote in votes]
    if known[0] is None or any(are_alike(found, language) for language in known):
        return None
    return Refusal("language", "the answer is in another language than the messages")


def are_alike(one: str, other: str | None) -> bool:
    """Whether two languages are the same, or are confused easily."""
    return one == other or any(one in alike and other in alike for alike in _ALIKE)
