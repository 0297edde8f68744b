"""Divides a text into narration and quoted speech, for all usual kinds of quotation marks. Pure.

A quotation never goes beyond its line, and each line is read from left to right, so the time is linear in the length of
the text.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_CLOSING = {
    "“": "”“",
    "„": '“”"',
    "”": "”",  # Swedish and Finnish
    "«": "»",
    "»": "«»",  # German and Danish; Finnish
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "＂": "＂",
    '"': '"',
    "‘": "’",
    "‚": "‘’",
    "'": "'",
}
_SINGLE = "‘‚'"
"""Marks that can also be apostrophes. A closing mark before a letter or digit counts as an apostrophe."""

_AMBIGUOUS = "”»›'‘"
"""Marks that open a quotation only at the beginning of a word."""

_ACTION = re.compile(r"\*(?=[^\s*])([^*\n]{1,300})\*(?!\*)\s*")
_SENTENCE_OPENERS = tuple("\"“„«»「『—–'‘*")
_CONTENT_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)*_\]]{0,4}\s+|(?<=[。！？])[」』）]{0,4}|\n")


@dataclass(frozen=True, slots=True)
class Divided:
    """A text in two parts.

    Attributes:
        narration: The text without its quotations; an ellipsis marks where one was.
        speech: The quotations, without their marks.

    """

    narration: str
    speech: tuple[str, ...]


def divide(text: str) -> Divided:
    """Return the narration and the quotations in `text`. A quotation without an end goes on to the end of its line.

    A mark that can be an apostrophe (`_SINGLE`) opens a quotation only if the quotation has an end.
    """
    narration: list[str] = []
    speech: list[str] = []
    for line in text.splitlines(keepends=True):
        _divide_line(line, narration, speech)
    return Divided("".join(narration), tuple(speech))


def begins_with_action(text: str) -> bool:
    """Whether `text` begins with a roleplay action such as `*smiles*`.

    Italics at the beginning of a sentence, such as the name of a ship, are no action: the sentence goes on.
    """
    action = _ACTION.match(text.lstrip())
    if action is None:
        return False
    after = text.lstrip()[action.end() :]
    return after.startswith(_SENTENCE_OPENERS) or after[:1].isupper() or action[0].endswith("\n")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text`, which end with a mark or with their line, without blank ones."""
    return [part for part in _SENTENCE_END.split(text) if part.strip()]


def count_letters(text: str) -> int:
    """Return the number of letters in `text`."""
    return sum(map(str.isalpha, text))


def fold(text: str) -> str:
    """Return the words of `text` in small letters, with single spaces between them and at both ends."""
    return f" {' '.join(_CONTENT_WORD.findall(text.casefold()))} "


def fold_names(names: Iterable[str]) -> set[str]:
    """Return `names` in small letters, and their words, by which people are called, too."""
    return {part.casefold() for name in names for part in (name.strip(), *name.split()) if part}


def _divide_line(line: str, narration: list[str], speech: list[str]) -> None:
    at = start = 0
    unclosed: set[str] = set()  # marks without a closing mark in the rest of the line, which is not searched again
    while at < len(line):
        mark = line[at]
        if mark not in _CLOSING or mark in unclosed or not _opens(line, at):
            at += 1
            continue
        end = _find_end(line, at)
        is_open = end is None
        if end is None:
            unclosed.add(mark)
            if mark in _SINGLE:
                at += 1
                continue
            end = len(line.rstrip("\r\n"))
        narration += [line[start:at], "…"]
        speech.append(line[at + 1 : end])
        at = start = end if is_open else end + 1
    narration.append(line[start:])


def _opens(line: str, at: int) -> bool:
    """Whether the mark at `at` can open a quotation."""
    if line[at] not in _AMBIGUOUS and line[at] != '"':
        return True
    before, after = line[at - 1 : at] if at else "", line[at + 1 : at + 2]
    return not (before.isalnum() and line[at] != '"') and bool(after.strip())


def _find_end(line: str, at: int) -> int | None:
    """Return the position of the mark that closes the quotation opened at `at`, or None."""
    closing, is_single = _CLOSING[line[at]], line[at] in _SINGLE
    for end in range(at + 1, len(line)):
        if line[end] in closing and not (is_single and line[end + 1 : end + 2].isalnum()):
            return end
    return None
