"""Parses a model's answer as prose that is kept whole: a summary, a diary. Pure.

Even if they are asked for the text only, cheap models wrap it: in a code fence, a tag, JSON or quotation marks, below a
heading or "Here is the summary:", above an offer to change it. The wrapping is removed until nothing changes any more,
so parsing is idempotent.
"""

import json
import re
from collections.abc import Callable
from itertools import dropwhile
from typing import Any

from app.summarising.answer_text import (
    UnusableAnswer,
    first_turn,
    refuses,
    says_nothing,
    says_only_nothing,
    spoken,
    without_controls,
)
from app.summarising.offers import offers, without_offers
from app.summarising.sentences import count_words

_MOST_CHARS_OF_NOTHING = 200
"""A longer text has content even if it begins with "Nothing happened."."""

_FENCE_LINE = re.compile(r"\s*(?:```|~~~)[\w-]{0,20}\s*")
_HEADING = re.compile(r"(?:[ \t]*#{1,6}[ \t]+)+")
_BOLD_LINE = re.compile(r"\s*(?:\*\*|__)[^*_]{1,80}(?:\*\*|__)\s*[:：]?\s*")
_LABEL_LINE = re.compile(r"(?=.{1,80}$)\s*(?:\S+\s+){0,8}\S+[:：][*_]{0,3}\s*")  # with more words it is content
_MOST_LABEL_WORDS = 20
"""The maximum number of words of a label. `_LABEL_LINE` also matches a sentence in a script without spaces."""

_ACKNOWLEDGEMENT = re.compile(r"\s*(?:sure|certainly|of course|okay|ok|understood|got it)\s*[.!]\s*", re.I)
_PREAMBLE = re.compile(
    r"\s*(?:(?:sure|certainly|of course|okay)[,.!]?\s+)?(?:based on [^,:：\n]{1,60},\s)?here(?:['’]s| is| are)\b"
    r"[^:：\n]{0,80}\b(?:summary|recap|diary|entry|entries|narrative|version|story|text|so far)\b[^:：\n]{0,40}[:：]\s*"
    r"|\s*[*_]{0,2}(?:(?:the|updated|new|whole|running|former)\s){0,3}(?:summary|recap|diary(?: entry)?|entry)[*_]{0,2}"
    r"\s?[:：][*_]{0,2}\s*",
    re.I,
)
_OFFER = re.compile(
    r"\s*(?:\(?note: (?:i|this|that|the (?:summary|recap|diary|entry|former|messages?))\b|let me know\b"
    r"|would you like me\b|feel free to\b|i hope (?:this|that) (?:helps|works|is what|meets|captures)\b"
    r"|if you(?:['’]d| would) like (?:me|any|more|a|the)\b|is there anything (?:else|you)\b)",
    re.I,
)
_RULE = re.compile(r"\s*(?:[-*_=]\s?){3,}\s*")
_TAGGED = re.compile(r"\s*<(\w{1,30})>(.*)</\1>\s*", re.S)
_CALL = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]{0,39}\(\s*+(?:[A-Za-z_][A-Za-z0-9_]{0,39}\s*+=\s*+)?(?=[\"“{])"
    r"(?:\"(?:[^\"\\]|\\.)*+\"|“[^”]*+”|[^\"“()])*+\)\s*+(?:;\s*+)?)++",
    re.S,
)
"""One or several calls and nothing else. A bracket in a string of the arguments does not end the call."""

_CALL_TAG = re.compile(r"\s*(?:\[TOOL_CALLS?\]|</?tool_call>|<function=|<\|tool)")
_CALL_LINE = re.compile(
    r"^[ \t]*(?:\[TOOL_CALLS?\]|</?tool_call>|<function=[^<>\n]{1,80}>|<\|tool[^<>\n]{0,40}>)[ \t]*(?:$|[\[{])", re.M
)
"""A line with nothing but a tag of a call, or with such a tag before JSON."""

_CALLEE, _ARGUMENTS = ("name", "tool", "function"), ("arguments", "parameters", "input")
_QUOTES = {'"': '"', "“": "”", "«": "»", "「": "」", "『": "』"}


def read_prose(answer: str, *, refusing: Callable[[str], bool] = refuses) -> str:
    """Return the text in `answer`: without wrapping, headings as plain lines, at most one blank line in a row.

    `refusing` returns whether a text is a refusal. Raises UnusableAnswer for a refusal, for data such as JSON, for the
    call of a tool, and for a text without content, such as "Sure." or one without letters and digits; also if `spoken`
    raises it.
    """
    text, before = spoken(answer), None
    while text != before:
        before = text
        text = "\n".join(line.rstrip() for line in text.splitlines()).strip()
        for take_off in _WRAPPINGS:
            text = take_off(text)
    if not any(char.isalnum() for char in text) or _ACKNOWLEDGEMENT.fullmatch(text):
        raise UnusableAnswer("the answer is empty")
    if text.startswith(("{", "[{")):
        raise UnusableAnswer("the answer is data, not prose")
    if _CALL.fullmatch(text) or _CALL_TAG.match(text) or _CALL_LINE.search(text):
        raise UnusableAnswer("the answer calls a tool instead of giving the text")
    if refusing(text):
        raise UnusableAnswer("the model refuses", "declined")
    return text


def is_empty_answer(text: str) -> bool:
    """Whether `text` is an explicit "nothing", perhaps with a reason."""
    first_line = text.split("\n", 1)[0].strip("*_`~ ")
    return len(text) <= _MOST_CHARS_OF_NOTHING and says_nothing(first_line)


def is_only_empty(text: str) -> bool:
    """Whether all of `text` is an explicit "nothing", or a bare "NONE", perhaps with a reason."""
    return len(text) <= _MOST_CHARS_OF_NOTHING and says_only_nothing(text.strip("*_`~ "))


def is_offer(line: str) -> bool:
    """Whether `line` is not part of the text, but a note about it or an offer to change it."""
    return _OFFER.match(line) is not None or offers(line.strip())


def _out_of_json(text: str) -> str:
    """Return the string in `text` if `text` is a JSON string, or a JSON object with one string that is not blank.

    A string that is shorter than the lists and objects beside it is only their title. A model that has learnt to call
    tools can return its text as the argument of a call (`_arguments_of`).
    """
    if not text.startswith(('"', "{")):
        return text
    try:
        found = json.loads(text, strict=False)
        if isinstance(found, dict):
            found = _arguments_of(found)
            strings = [value for value in found.values() if isinstance(value, str) and value.strip()]
            nested = [value for value in found.values() if value and isinstance(value, list | dict)]
            beside = json.dumps(nested, ensure_ascii=False) if nested else ""
            found = strings[0] if len(strings) == 1 and len(strings[0]) > len(beside) else None
    except (ValueError, RecursionError):
        return text
    return without_controls(found) if isinstance(found, str) else text


def _arguments_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments if `found` is the call of a tool, else `found`."""
    arguments = next((found[name] for name in _ARGUMENTS if name in found), None)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return found
    is_call = any(name in found for name in _CALLEE)
    return arguments if is_call and isinstance(arguments, dict) else found


def _unwrap_tag(text: str) -> str:
    """Return `text` without the tag around it, if there is one. In `<b>x</b> and <b>y</b>`, no tag is around it all."""
    tagged = _TAGGED.fullmatch(text)
    if tagged is None:
        return text
    before, end, _ = tagged[2].partition(f"</{tagged[1]}>")
    return text if end and f"<{tagged[1]}>" not in before else tagged[2]


def _unquote(text: str) -> str:
    """Return `text` without the quotation marks around it, unless one of these marks is also inside of it."""
    quoted = len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and not {text[0], text[-1]} & set(text[1:-1])
    return text[1:-1] if quoted else text


def _drop_fences(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not _FENCE_LINE.fullmatch(line))


def _drop_opening(text: str) -> str:
    """Return `text` without the first lines that are not part of it; the last line stays."""
    *before, last = text.split("\n")
    return "\n".join([*dropwhile(_is_opening, before), last])


def _drop_closing(text: str) -> str:
    """Return `text` without the last lines that are not part of it; the first line stays."""
    first, *after = text.split("\n")
    kept = [*dropwhile(_is_closing, reversed(after))]
    return "\n".join([first, *reversed(kept)])


def _drop_offers(text: str) -> str:
    """Return `text` without the offers at the end of its last line; the first sentence of that line stays."""
    before, newline, line = text.rpartition("\n")
    return f"{before}{newline}{without_offers(line)}"


def _drop_preambles(text: str) -> str:
    line, newline, rest = text.partition("\n")
    while preamble := _PREAMBLE.match(line):
        line = line[preamble.end() :]
    return f"{line}{newline}{rest}"


def _drop_heading_marks(text: str) -> str:
    return "\n".join(_HEADING.sub("", line, count=1) if _HEADING.match(line) else line for line in text.split("\n"))


def _drop_gaps(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text)


def _is_opening(line: str) -> bool:
    """Whether a first line is not part of the text: blank, a rule, "Sure!", a heading or a label.

    A heading or label with a digit is part of the text, because it can be a date.
    """
    if not line.strip() or _RULE.fullmatch(line) or _ACKNOWLEDGEMENT.fullmatch(line):
        return True
    is_label = _LABEL_LINE.fullmatch(line) and count_words(line) <= _MOST_LABEL_WORDS
    is_titled = _HEADING.match(line) or _BOLD_LINE.fullmatch(line) or is_label
    return bool(is_titled) and not any(char.isdigit() for char in line)


def _is_closing(line: str) -> bool:
    """Whether a last line is not part of the text: blank, an offer, a rule."""
    return not line.strip() or is_offer(line) or _RULE.fullmatch(line) is not None


_WRAPPINGS: tuple[Callable[[str], str], ...] = (
    first_turn,
    _out_of_json,
    _unwrap_tag,
    _unquote,
    _drop_fences,
    _drop_opening,
    _drop_closing,
    _drop_offers,
    _drop_preambles,
    _drop_heading_marks,
    _drop_gaps,
)
"""The functions that each remove one kind of wrapping, in the order in which they are applied."""
