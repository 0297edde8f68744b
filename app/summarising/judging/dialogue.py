"""Finds dialogue that an answer invents: lines of a script, and quotations whose words are new. Pure."""

import re
from collections.abc import Sequence

from app.summarising.judging.speech import begins_with_action, count_letters
from app.summarising.sentences import find_terms

_MIN_LETTERS = 12
"""A shorter quotation may be a name or a title."""

_MOST_SPEECH_SHARE = 0.4
_MOST_REPEATED_SHARE = 0.12
_MIN_QUOTES = 2
_STEM = 5
_MIN_WORD_CHARS = 4
_MIN_FOREIGN_WORDS = 3

_LINE = re.compile(r"[*_]{0,3}([^\W\d_][^:：*_\n]{0,30})[*_]{0,3}\s?[:：][*_]{0,3}\s?(.*)")
_MOST_LABEL_WORDS = 2
_SPOKEN = re.compile(r"\*\S|[\"“„«「『]")
_TALKS = re.compile(r"\b(?:I|you|me|my|your)\b|[?!]$", re.I)


def is_script(text: str, *, first_person: bool) -> bool:
    """Whether `text` is written as a script, with lines such as `Mira: *looks up* You came back.`.

    A text that begins with a name and an action is a script. In any other script, at least half of the lines, and at
    least two, begin with a name. Other texts have such lines, too ("Mira: a clockmaker"), so at least half of these
    lines must be speech. A line is speech if an action or a quotation mark follows the name. Unless the text is in the
    first person, a line is also speech if it has a word such as "I" or "you", or ends with a question or exclamation
    mark.
    """
    if _acts_after_name(text):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    said = [speech for line in lines if (speech := _find_speech(line))]
    if len(said) < _MIN_QUOTES or 2 * len(said) < len(lines):
        return False
    spoken = sum(1 for speech in said if _SPOKEN.match(speech) or (not first_person and _TALKS.search(speech)))
    return 2 * spoken >= len(said)


def invents_dialogue(text: str, speech: Sequence[str], folded: str, *, may_translate: bool) -> bool:
    """Whether quotations with words that are not in the material are much of `text`.

    Args:
        text: The answer.
        speech: Its quotations.
        folded: The material, as `speech.fold` normalises it.
        may_translate: Whether quotations can be translations, whose words are always new. If so, the quotations count
            only if they are too large a share of the text for any summary.

    """
    letters = max(count_letters(text), 1)
    known = _find_stems(folded)
    new = [count_letters(quote) for quote in speech if _is_new(quote, known)]
    if sum(new) >= _MOST_SPEECH_SHARE * letters:
        return True
    return not may_translate and len(new) >= _MIN_QUOTES and sum(new) >= _MOST_REPEATED_SHARE * letters


def quotes_something_else(speech: Sequence[str], folded: str) -> bool:
    """Whether one of the quotations `speech` is long and has no word of the material `folded` at all."""
    known = _find_stems(folded)
    return any(_is_foreign(quote, known) for quote in speech if count_letters(quote) >= _MIN_LETTERS)


def _is_foreign(quote: str, known: set[str]) -> bool:
    stems = _find_stems(quote)
    return len(stems) >= _MIN_FOREIGN_WORDS and not stems & known


def _acts_after_name(text: str) -> bool:
    speech = _find_speech(text.lstrip().split("\n", 1)[0])
    return speech is not None and begins_with_action(speech)


def _find_speech(line: str) -> str | None:
    """Return what follows a name and a colon in `line`, or None. A line that begins with a bullet gives None."""
    found = _LINE.fullmatch(line.strip())
    return found[2] if found and len(found[1].split()) <= _MOST_LABEL_WORDS else None


def _is_new(quote: str, known: set[str]) -> bool:
    """Whether `quote` is long, and at least half of its words are new; a paraphrase repeats most words."""
    stems = _find_stems(quote)
    is_long = count_letters(quote) >= _MIN_LETTERS and len(stems) > 1
    return is_long and 2 * len(stems & known) <= len(stems)


def _find_stems(text: str) -> set[str]:
    """Return the beginnings of the words of `text`. Short words are left out if their script has small letters."""
    terms = map(str.casefold, find_terms(text))
    return {term[:_STEM] for term in terms if len(term) >= _MIN_WORD_CHARS or not term[0].islower()}
