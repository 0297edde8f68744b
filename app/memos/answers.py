"""A model's answer, read as highlights. Pure.

The prompt asks for one labelled line per highlight. Cheap models answer with lists, headings, JSON, chatter
and bold marks instead, so reading makes the answer plainer step by step: drop what was thought aloud, write
JSON as lines, find the lines that begin a highlight, strip the decoration off each.

In doubt an answer is unusable rather than read generously: it is asked for again; a wrong memory stays.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import cast

from app.memos.highlights import Category, Highlight
from app.summarising.reading import FENCE, UnusableAnswer, refuses, says_nothing, spoken, without_controls

MAX_HIGHLIGHTS = 3
MAX_HIGHLIGHT_CHARS = 400


def parse_highlights(answer: str) -> list[Highlight]:
    """Read a model's `answer`: at most three highlights, or [] where it says that nothing is memorable.

    Texts are one line of at most 400 characters, cut at a word. A category named in another language is
    None, and its tag stays in the text. Without any mark a lone sentence is a highlight, prose is not.
    Raises UnusableAnswer.
    """
    heard = spoken(answer)[:_MAX_ANSWER_CHARS]
    plain = _json_as_lines("\n".join(FENCE.sub("\n", heard).splitlines()))
    lines = [_read_line(line) for line in _INNER_LABEL.sub(r"\n\g<0>", plain).split("\n")]
    if not any(line.text or line.category for line in lines):
        raise UnusableAnswer("the answer is empty")
    return _keep_usable(_find_highlights(lines))


_MAX_ANSWER_CHARS = 20_000
"""Three sentences end long before; a model that gets here runs in circles."""

# --- the words and signs of models; repeats are bounded, so that no pattern backtracks for long ---

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
_NONE = r"(?:category ?[:：=] ?)?(?:none|null|other|no category|category)"  # said instead of left out
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
_INNER_LABEL = re.compile(
    r"【[^【】\n]{0,30}\d\s?】[*_]{0,2}\s?[:：]|【\s?highlight\b[^【】\n]{0,40}】"
    r"|\[\s?highlight\s?[#№]?\s?\d[^\[\]\n]{0,40}\]|\bhighlight\s?[#№]?\s?\d+[*_]{0,2}\s?[:：]",
    re.I,
)
_FIELD = re.compile(r"^(?:text|sentence|content|description|memory|event|fact) ?[:：]", re.I)
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_SENTENCE_ENDS = tuple('.!?…。！？"”»」』)）]】')
_PUNCTUATION_BEFORE = " #>_:：.)–—|-"

_PLACEHOLDER = re.compile(r"<[^<>]*>|[\[(][^\[\]()]*[\])]")

_PREAMBLE = re.compile(r"(?:here|sure|certainly|of course|okay|the (?:main |only )?highlight)\b[^:：]*[:：]\s*", re.I)
_CHATTER = re.compile(r"[*\"“「『({\[<—]|.*[?？]$|.*\b(?:I|[Yy]ou|[Yy]our|me|my)\b")
_NEXT_SENTENCE = re.compile(r"(?:[.!?…][\"'”’)]*\s|[。！？])\s*\w")
_SENTENCE_LIKE = re.compile(r"(?:\S+\s){4}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{6}")

# --- JSON ---


_JSON_START = re.compile(r"^[ \t]*[\[{]", re.M)
_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")
_BETWEEN_OBJECTS = re.compile(r"\}\s*\n\s*\{")
_TEXT_KEYS = ("text", "highlight", "content", "sentence", "description", "memory", "summary", "fact")
_CATEGORY_KEYS = ("category", "type", "tag", "kind")
_HIGHLIGHTS_KEY = re.compile(r"(?:highlights?|memos?|memories|facts|items|results?|answer)(?:[ _#-]?\d+)?|\d+")


def _json_as_lines(text: str) -> str:
    """Write the JSON in `text` as labelled lines; `text` itself where there is none that holds highlights."""
    start = _JSON_START.search(text)
    if start is None or _INNER_LABEL.search(text, 0, start.start()):
        return text
    end = max(text.rfind("]"), text.rfind("}")) + 1
    found = text[start.start() : end] or "no JSON"  # what would mend nothing to an empty list
    mended = f"[{_BETWEEN_OBJECTS.sub('},{', _TRAILING_COMMA.sub('', found))}]"
    for candidate in (found, mended):
        try:
            sentences = _find_sentences(json.loads(candidate, strict=False))
        except (ValueError, RecursionError):
            continue
        if sentences is not None:
            return "\n".join(f"【Highlight 1】: {sentence}" for sentence in sentences) or "NONE"
    return text


def _find_sentences(value: object, category: Category | None = None) -> list[str] | None:
    """The sentences in decoded JSON, tagged; [] where it says that there is none, None where neither."""
    if value is None or value == []:
        return []
    if isinstance(value, str):
        folded = " ".join(without_controls(value).split())
        return [f"({category}) {folded}" if category else folded]
    if isinstance(value, dict):
        fields = {str(key).lower(): inner for key, inner in value.items()}
        category = next((c for key in _CATEGORY_KEYS if (c := _category_in(str(fields.get(key, ""))))), category)
        text = next((fields[key] for key in _TEXT_KEYS if isinstance(fields.get(key), str)), None)
        if text is not None:
            return _find_sentences(text, category)
        inside = [
            _find_sentences(inner, _category_in(key) or category)
            for key, inner in fields.items()
            if _HIGHLIGHTS_KEY.fullmatch(key) or _category_in(key)
        ]
    else:
        inside = [_find_sentences(item, category) for item in value] if isinstance(value, list) else []
    known = [sentences for sentences in inside if sentences is not None]
    return [sentence for sentences in known for sentence in sentences] if known else None


# --- lines ---


@dataclass(slots=True)
class _Line:
    """A line without its decoration, or the highlight that it and the lines after it make up.

    Attributes:
        text: Empty where the line holds nothing but marks.
        category: That of the line's tag.
        indent: In characters.
        labelled: Whether a label like 【Highlight 1】 begins it.
        marked: Whether a label, a bullet or a category begins it.

    """

    text: str
    category: Category | None = None
    indent: int = 0
    labelled: bool = False
    marked: bool = False


def _category_in(words: str) -> Category | None:
    found = _ANY_CATEGORY.search(words)
    return cast("Category", found.lastgroup) if found else None


def _read_line(line: str) -> _Line:
    folded = " ".join(line.split())
    label = _LABEL.match(folded)
    begin = label or _MARK.match(folded)
    category = _category_in(label[0]) if label else None
    text, before = _EMPHASIS.sub("", folded[begin.end() :] if begin else folded), None
    while text != before:
        before = text
        text = " ".join(text.split()).lstrip(_PUNCTUATION_BEFORE).rstrip(" _")
        text = _FIELD.sub("", _unquoted(text), count=1)
        if tag := _LEADING_TAG.match(text):
            category, text = category or _category_in(tag[0]), text[tag.end() :]
        if tag := _TRAILING_TAG.search(text):
            category, text = category or _category_in(tag[0]), text[: tag.start()] + tag["stop"]
    if not any(char.isalnum() for char in text):
        text = ""
    marked = begin is not None or bool(category and text)
    return _Line(text, category, len(line) - len(line.lstrip()), label is not None, marked)


def _unquoted(text: str) -> str:
    wrapped = len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and not {text[0], text[-1]} & set(text[1:-1])
    return text[1:-1].strip() if wrapped else text


def _find_highlights(lines: Sequence[_Line]) -> list[_Line]:
    by_label = any(line.labelled for line in lines)
    opening = [line.text for line in takewhile(lambda line: not line.marked, lines) if line.text]
    if not by_label and opening and refuses(opening[0]):
        raise UnusableAnswer("the model refuses")
    if not by_label and any(says_nothing(text) for text in opening):
        return [_Line("NONE")]
    return _join(lines, by_label) or [_Line(_lone_sentence(opening))]


def _join(lines: Sequence[_Line], by_label: bool) -> list[_Line]:
    """Put `lines` together: labels begin a highlight, or, where there is none, bullets and category tags."""
    joined: list[_Line] = []
    heading: Category | None = None
    goes_on = False
    for line in lines:
        last = joined[-1] if joined else None
        if line.category and not line.text and not line.labelled:
            # A category alone belongs to the highlight before it, or else is the heading of those below.
            if last and not last.category:
                last.category = line.category
            else:
                heading = line.category
        elif line.labelled if by_label else line.marked:
            is_detail = last and last.text and line.indent > last.indent
            if by_label or not is_detail:
                joined.append(replace(line, category=line.category or heading))
        elif last and (not last.text or (goes_on and line.text[:1].islower() and not line.marked)):
            last.text = f"{last.text} {line.text}".strip()
            last.category = last.category or line.category
        goes_on = bool(joined and line.text) and not joined[-1].text.endswith(_SENTENCE_ENDS)
    return joined


def _lone_sentence(lines: Sequence[str]) -> str:
    """The one sentence that `lines` are, without a preamble.

    It has to look like a statement about named people: no dialogue, nobody says "I" or "you", no question.
    Longer prose may be a story that goes on, or talk about the task; neither must become a memory.
    """
    spoken = [line for line in lines if not line.endswith((":", "："))]
    if len(spoken) != 1:
        raise UnusableAnswer("the answer is prose without a mark of where a highlight begins")
    sentence = _PREAMBLE.sub("", spoken[0], count=1)
    if _CHATTER.match(sentence) or _NEXT_SENTENCE.search(sentence):
        raise UnusableAnswer("the answer is talk, not a factual sentence")
    if not _SENTENCE_LIKE.match(sentence) or not sentence.endswith(_SENTENCE_ENDS):
        raise UnusableAnswer("the answer is no whole sentence")
    return sentence


# --- what is left of it ---


def _keep_usable(found: Sequence[_Line]) -> list[Highlight]:
    kept: dict[str, Highlight] = {}
    is_nothing = False
    for line in found:
        if refuses(line.text):
            raise UnusableAnswer("the model refuses")
        if says_nothing(line.text):
            is_nothing = True
        elif line.text and not _PLACEHOLDER.fullmatch(line.text):
            text = _shortened(line.text)
            kept.setdefault(text, Highlight(text, line.category))
    if not kept and not is_nothing:
        raise UnusableAnswer("every highlight of the answer is blank")
    return list(kept.values())[:MAX_HIGHLIGHTS]


def _shortened(text: str) -> str:
    if len(text) <= MAX_HIGHLIGHT_CHARS:
        return text
    head = text[: MAX_HIGHLIGHT_CHARS - 1]
    words = head.rpartition(" ")[0]
    return f"{words if len(words) > len(head) // 2 else head}…"
