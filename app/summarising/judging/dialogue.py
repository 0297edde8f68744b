"""Finds dialogue that an answer invents: lines of a script, and quotations whose words are new. Pure."""

import re
from collections.abc import Collection, Iterator, Sequence

from app.summarising.judging.speech import begins_with_action, count_letters, fold_names
from app.summarising.sentences import find_terms

_MIN_LETTERS = 12
"""A shorter quotation may be a name or a title."""

_MOST_SPEECH_SHARE = 0.4
_MOST_REPEATED_SHARE = 0.12
_MIN_QUOTES = 2
_MIN_SPEAKERS = 2
_STEM = 5
_MIN_WORD_CHARS = 4
_MIN_FOREIGN_WORDS = 3

_LINE = re.compile(r"[*_]{0,3}([^\W\d_][^:：*_\n]{0,30})[*_]{0,3}\s?[:：][*_]{0,3}\s?(.*)")
_MOST_LABEL_WORDS = 2
_SPOKEN = re.compile(r"\*\S|[\"“„«「『]")
_TALKS = re.compile(r"\b(?:I|you|me|my|your)\b|[?!]$", re.I)
_ADDRESSES = re.compile(r"\byou(?:r|rs|rself)?\b", re.I)
_ROLES = frozenset({"user", "assistant", "human"})
_INNER_LABEL = re.compile(r"(?<=[.!?…。！？\"”»」』*)])\s+(?=[*_]{0,3}([^\W\d_][^:：*_\n]{0,30})[*_]{0,3}\s?[:：])")
"""White space after a sentence and before a possible name with a colon."""


def is_script(text: str, *, first_person: bool) -> bool:
    """Whether `text` is written as a script, with lines such as `Mira: *looks up* You came back.`.

    A text that begins with a name and an action is a script. In any other script, at least half of the lines, and at
    least two, begin with a name. Other texts can have such lines, too ("Mira: a clockmaker"), so a text is a script
    only if at least half of its lines with a name are speech. A line is speech if an action or a quotation mark follows
    the name. Unless the text is in the first person, a line is also speech if it has a word such as "I" or "you", or
    ends with a question or exclamation mark.
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
    """Whether a large part of `text` is quotations with words that the material does not have.

    Args:
        text: The answer.
        speech: Its quotations.
        folded: The material, as `speech.fold` normalises it.
        may_translate: Whether quotations can be translations, whose words are always new. If so, the result is true
            only if the new quotations are at least `_MOST_SPEECH_SHARE` of the text, which is too much for a summary.

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


def may_be_dialogue(text: str, *, author: str, names: Collection[str]) -> bool:
    """Whether `text`, in the first person, looks like a dialogue of its `author` and of others.

    Notes about people can look like that, too. `names` are those of the speakers, as far as they are known.
    """
    return has_turns(text, author, names) or _may_have_turns(text, author, names)


def has_turns(text: str, author: str, names: Collection[str]) -> bool:
    """Whether `text` is mostly turns of its author and of somebody else.

    At least two thirds of its letters, without the labels, are in such turns. Without an `author`, one of the speakers
    must be known. A diary may have notes about people under their names ("Mira: I owe her cherries."), perhaps with its
    author among them. So one more condition has to be true: a speaker speaks again after another one, or at least half
    of the others' turns are speech. Speech begins with a quotation mark or an action, or has the word "you".
    """
    own = fold_names((author,)) | {"assistant"}
    known = own | fold_names(names) | _ROLES
    turns = list(_find_turns(text, known))
    labels = [label for label, _ in turns]
    if len(set(labels)) < _MIN_SPEAKERS or (own if author else known).isdisjoint(labels):
        return False
    letters = count_letters(text) - count_letters("".join(labels))
    if 3 * sum(count_letters(speech) for _, speech in turns) < 2 * letters:
        return False
    others = [speech for label, speech in turns if label not in own] or [speech for _, speech in turns]
    spoken = sum(1 for speech in others if _SPOKEN.match(speech) or _ADDRESSES.search(speech))
    return _takes_turns(labels) or 2 * spoken >= len(others)


def _may_have_turns(text: str, author: str, names: Collection[str]) -> bool:
    """Whether each line of `text` looks like a turn of a known speaker, with the author and another one among them.

    Notes about people look like that, too, if they are whole sentences.
    """
    own = fold_names((author,)) | {"assistant"}
    known = own | fold_names(names) | _ROLES
    turns = [_split_label(line) for line in text.split("\n") if line.strip()]
    labels = {label.casefold() for label, _ in turns}
    if len(labels) < _MIN_SPEAKERS or not labels <= known or own.isdisjoint(labels):
        return False
    return all(speech and not speech[0].islower() for _, speech in turns)


def _takes_turns(labels: Sequence[str]) -> bool:
    """Whether somebody speaks, then another one, then the first one again."""
    return any(first == third != second for first, second, third in zip(labels, labels[1:], labels[2:], strict=False))


def _find_turns(text: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the label, in small letters, and the speech of each turn in `text`.

    A turn begins with its line. It may also begin within a line, after a sentence, if its label is one of `known`.
    """
    for line in text.split("\n"):
        starts = [label.end() for label in _INNER_LABEL.finditer(line) if label[1].strip().casefold() in known]
        for start, end in zip([0, *starts], [*starts, len(line)], strict=True):
            label, speech = _split_label(line[start:end])
            if speech is not None and (len(label.split()) <= _MOST_LABEL_WORDS or label.casefold() in known):
                yield label.casefold(), speech


def _acts_after_name(text: str) -> bool:
    speech = _find_speech(text.lstrip().split("\n", 1)[0])
    return speech is not None and begins_with_action(speech)


def _find_speech(line: str) -> str | None:
    """Return what follows a name and a colon in `line`, or None. A line that begins with a bullet gives None."""
    label, speech = _split_label(line)
    return speech if len(label.split()) <= _MOST_LABEL_WORDS else None


def _split_label(line: str) -> tuple[str, str | None]:
    """Return the label at the beginning of `line` and what follows its colon, or "" and None."""
    found = _LINE.fullmatch(line.strip())
    return (found[1].strip(), found[2]) if found else ("", None)


def _is_new(quote: str, known: set[str]) -> bool:
    """Whether `quote` is long, and at least half of its words are new; a paraphrase repeats most words."""
    stems = _find_stems(quote)
    is_long = count_letters(quote) >= _MIN_LETTERS and len(stems) > 1
    return is_long and 2 * len(stems & known) <= len(stems)


def _find_stems(text: str) -> set[str]:
    """Return the beginnings of the words of `text`. Short words are left out if their script has small letters."""
    terms = map(str.casefold, find_terms(text))
    return {term[:_STEM] for term in terms if len(term) >= _MIN_WORD_CHARS or not term[0].islower()}
