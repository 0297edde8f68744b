"""Finds lines and sentences that a model repeats, and a text that ends in a loop of the same words. Pure."""

import re
from collections import Counter
from collections.abc import Iterator

from app.kit.refusals import Refusal
from app.summarising.judging.speech import count_letters, fold

_MOST_TIMES = 2
_MIN_LETTERS = 12
_MIN_HAN_LETTERS = 8
_MOST_LOOP_WORDS = 12
_LOOPS = 4

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)*_]*\s+|(?<=[。！？])[」』）]*|\n")
_NUMBER = re.compile(r"^[\d ]+")  # the date of an entry, the number of a list
_SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")

_REPEATS = Refusal("repetition", "the answer repeats the same words")


def find_repetition(text: str, known: str) -> Refusal | None:
    """Return a refusal if a sentence or line occurs three times, or `text` ends with four equal runs.

    A run is one to twelve words, or three to twelve Chinese or Japanese characters.

    Short sentences, such as "I miss him.", count only if `text` consists of a single one of them, repeated. An item of
    a list is not divided into sentences, because items about different people may contain the same sentence. `known` is
    the material, normalised by `fold` (`speech.py`): a repetition that the material has, too, does not count.
    """
    parts = [(part, _NUMBER.sub("", fold(part))) for part in _divide(text)]
    said = [folded.strip() for _, folded in parts if folded.strip()]
    if len(said) > _MOST_TIMES and len(set(said)) == 1 and f" {' '.join(said)} " not in known:
        return _REPEATS
    counts = Counter(folded for part, folded in parts if _is_long_enough(part))
    if any(times > _MOST_TIMES and known.count(part) < times for part, times in counts.items()):
        return _REPEATS
    end = _find_loop(fold(text).split(), " ") or _find_loop(_SPACELESS.findall(text), "", shortest=3)
    return _REPEATS if end and end not in known else None


def _divide(text: str) -> Iterator[str]:
    """Yield the items of lists, and the sentences of all other lines."""
    for line in text.split("\n"):
        if line.lstrip().startswith(("- ", "* ")):
            yield line
        else:
            yield from _SENTENCE_END.split(line)


def _is_long_enough(part: str) -> bool:
    return count_letters(part) >= (_MIN_HAN_LETTERS if _SPACELESS.search(part) else _MIN_LETTERS)


def _find_loop(parts: list[str], separator: str, shortest: int = 1) -> str | None:
    """Return the end of `parts` if that is four equal runs of at most twelve parts, else None."""
    for length in range(shortest, _MOST_LOOP_WORDS + 1):
        end = parts[-length * _LOOPS :]
        if len(end) == length * _LOOPS and end == end[:length] * _LOOPS:
            return separator.join(end)
    return None
