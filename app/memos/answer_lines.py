"""Strips the decoration from the lines of a model's answer, and joins the lines of each highlight. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Self, cast

from app.memos.highlights import Category

# --- the markup in answers; repetitions are bounded, so that no pattern backtracks for long ---

_CATEGORY = (
    r"(?:(?P<relationship>relationships?(?:[ _-](?:progression|development|change|shift|growth))?)"
    r"|(?P<milestone>(?:(?:significant|major|key|emotional|personal)[ _-])?milestones?)"
    r"|(?P<keepsake>(?:notable[ _-]items?[ _-](?:&|and)[ _-])?keepsakes?|notable[ _-]items?|mementos?)"
    r"|(?P<turning_point>(?:(?:major|key|story|plot)[ _-]){0,2}turning[ _-]points?|plot[ _-]twists?"
    r"|revelations?))"
)
_ANY_CATEGORY = re.compile(_CATEGORY, re.I)
_WORD = re.sub(r"\?P<\w+>", "?:", _CATEGORY)
_NAMED = rf"(?:category|type|tag) ?[:：=] ?{_WORD}"
_NONE = r"(?:category ?[:：=] ?)?(?:none|null|other|no category|category)"  # written for "no category"
_TAG = (
    rf"[(\[{{<（［【] ?(?:{_NAMED}|{_WORD})(?: ?[/,&|、] ?{_WORD}){{0,3}}"
    r"(?: ?[:：][\w ]{1,30})? ?[)\]}>）］】]"
)
_LEADING_TAG = re.compile(
    rf"(?:{_TAG}|[(\[]{_NONE}[)\]](?=.*\w)|{_NAMED} ?(?:[.,;:：–—|-]|$)"
    rf"|{_WORD}(?: ?\([\w ]{{1,30}}\))?(?: ?[:：–—|]| -(?= )|$))",
    re.I,
)
_TRAILING_TAG = re.compile(rf"(?:(?: ?[–—|-])? ?(?:{_TAG}|{_NAMED})| [–—|-] {_WORD})(?P<stop>[.。]?)$", re.I)

_EMPHASIS = re.compile(r"[*`]")
_M = r"[\s*_`]{0,4}"  # white space and emphasis
_BULLET = r"(?:[-*+]\s|[•‣◦▪●·①-⑳]|\(?\d{1,2}(?:[.．](?!\d)|[)）、])|\[\d{1,2}\]|[#№]?\d{1,2}[:：]\s)\s{0,4}"
_MARK = re.compile(_BULLET)
_LABEL = re.compile(
    rf"(?:{_BULLET}|[-#>\s*_`(])*+"
    rf"(?:【[^【】]{{0,30}}\d[^【】]{{0,40}}】|[\[【]\s?highlight\b[^\[\]【】]{{0,40}}[\]】]"
    rf"|highlight\s?[#№]?\s?\d+{_M}(?=[:：.)(（\[–—-]|$)|highlight{_M}(?=[:：]{_M}\S))"
    rf"{_M}(?:[:：.)–—-]{_M}){{0,2}}",
    re.I,
)
INNER_LABEL = re.compile(
    r"【[^【】\n]{0,30}\d\s?】[*_]{0,2}\s?[:：]|【\s?highlight\b[^【】\n]{0,40}】"
    r"|\[\s?highlight\s?[#№]?\s?\d[^\[\]\n]{0,40}\]|\bhighlight\s?[#№]?\s?\d+[*_]{0,2}\s?[:：]",
    re.I,
)
_MOST_PASSES = 16
"""How many times a line is searched for decoration to remove; each time removes what is outermost."""

_FIELD = re.compile(r"^(?:text|sentence|content|description|memory|event|fact) ?[:：]", re.I)
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
SENTENCE_ENDS = tuple('.!?…。！？"”»」』)）]】')
_PUNCTUATION_BEFORE = " #>_:：.)–—|-"


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A line without its decoration, or a highlight joined from such lines.

    Attributes:
        text: Empty if the line contains only marks.
        category: The category of the line's tag, if it has one.
        indent: In characters.
        labelled: Whether the line begins with a label like 【Highlight 1】.
        marked: Whether the line begins with a label or a bullet, or has a category and text.

    """

    text: str
    category: Category | None = None
    indent: int = 0
    labelled: bool = False
    marked: bool = False

    @property
    def is_bare_tag(self) -> bool:
        """Whether the line is a category without a text or a label."""
        return self.category is not None and not self.text and not self.labelled

    def extended_by(self, line: Self) -> Self:
        """Return this line with the text of `line` appended, and with the category of `line` if it has none."""
        return replace(self, text=f"{self.text} {line.text}".strip(), category=self.category or line.category)


def find_category(words: str) -> Category | None:
    """Return the first category that `words` name, or None."""
    found = _ANY_CATEGORY.search(words)
    return cast("Category", found.lastgroup) if found else None


def read_line(line: str) -> AnswerLine:
    """Return a line without its decoration: marks, emphasis, quotation marks, field names, category tags."""
    folded = " ".join(line.split())
    label = _LABEL.match(folded)
    begin = label or _MARK.match(folded)
    category = find_category(label[0]) if label else None
    text, before = _EMPHASIS.sub("", folded[begin.end() :] if begin else folded), None
    for _ in range(_MOST_PASSES):
        if text == before:
            break
        before = text
        text = " ".join(text.split()).lstrip(_PUNCTUATION_BEFORE).rstrip(" _")
        text = _FIELD.sub("", _unquoted(text), count=1)
        if tag := _LEADING_TAG.match(text):
            category, text = category or find_category(tag[0]), text[tag.end() :]
        if tag := _TRAILING_TAG.search(text):
            category, text = category or find_category(tag[0]), text[: tag.start()] + tag["stop"]
    if not any(char.isalnum() for char in text):
        text = ""
    marked = begin is not None or bool(category and text)
    return AnswerLine(text, category, len(line) - len(line.lstrip()), label is not None, marked)


def _unquoted(text: str) -> str:
    wrapped = len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and not {text[0], text[-1]} & set(text[1:-1])
    return text[1:-1].strip() if wrapped else text


def join_lines(lines: Sequence[AnswerLine], *, by_label: bool) -> list[AnswerLine]:
    """Return the highlights that `lines` make up.

    With `by_label`, a highlight begins with a label; otherwise with a bullet or a category tag.
    """
    joined: list[AnswerLine] = []
    heading: Category | None = None
    for before, line in pairwise([AnswerLine(""), *lines]):
        match _choose_part(line, before, joined[-1] if joined else None, by_label=by_label):
            case "tag":
                joined[-1] = replace(joined[-1], category=line.category)
            case "heading":
                heading = line.category
            case "beginning":
                joined.append(replace(line, category=line.category or heading))
            case "rest":
                joined[-1] = joined[-1].extended_by(line)
            case "aside":
                pass
    return joined


_Part = Literal["tag", "heading", "beginning", "rest", "aside"]
"""What a line is: `tag` is the category of the highlight above, `heading` the category of the highlights below,
`beginning` and `rest` are parts of a highlight, `aside` is dropped."""


def _choose_part(line: AnswerLine, before: AnswerLine, highlight: AnswerLine | None, *, by_label: bool) -> _Part:
    """Return what `line` is; `before` is the line above it, and `highlight` is the last highlight so far."""
    if line.is_bare_tag:
        return "tag" if highlight and not highlight.category else "heading"
    if by_label and line.labelled:
        return "beginning"
    if not by_label and line.marked:
        return "aside" if _is_detail(line, highlight) else "beginning"
    if highlight and (not highlight.text or _is_continued(highlight, before, line)):
        return "rest"
    return "aside"


def _is_detail(line: AnswerLine, highlight: AnswerLine | None) -> bool:
    """Whether a marked line is a sub-item of the highlight, and not a highlight itself."""
    return highlight is not None and bool(highlight.text) and line.indent > highlight.indent


def _is_continued(highlight: AnswerLine, before: AnswerLine, line: AnswerLine) -> bool:
    """Whether `line` continues an unfinished sentence of the highlight; `before` is the line above it."""
    is_open = bool(before.text) and not highlight.text.endswith(SENTENCE_ENDS)
    return is_open and line.text[:1].islower() and not line.marked
