"""Parses a model's answer into highlights. Pure.

The prompt asks for one labelled line per highlight. Cheap models answer with lists, headings, JSON, chatter
and bold marks instead, so parsing simplifies the answer step by step: drop the model's reasoning, convert
JSON to lines, strip the decoration of each line, join the lines of each highlight.

A doubtful answer is rejected as unusable: an answer can be requested again, but a wrong memory stays.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

from app.kit.refusals import Refusal
from app.memos.answer_json import close_json, json_as_lines
from app.memos.answer_lines import INNER_LABEL, SENTENCE_ENDS, AnswerLine, join_lines, read_line
from app.memos.highlights import Highlight
from app.summarising.answer_text import FENCE, UnusableAnswer, first_turn, refuses, says_nothing, spoken
from app.summarising.judging.judge import Profile
from app.summarising.offers import without_offers

MAX_HIGHLIGHTS = 3
MAX_HIGHLIGHT_CHARS = 400


def parse_highlights(answer: str) -> list[Highlight]:
    """Return the highlights in `answer`, at most three, or [] if the answer states that nothing is memorable.

    The text of a highlight is one line of at most 400 characters; a longer text is cut at a word. If a tag names the
    category in another language, the category is None and the tag stays in the text. In an answer without any marks, a
    single sentence is a highlight; longer prose is not. Raises UnusableAnswer.
    """
    lines = _read_lines(json_as_lines(_unfenced(answer)))
    if not any(line.text or line.category for line in lines):
        raise UnusableAnswer("the answer is empty")
    return _keep_usable(_find_highlights(lines))


def parse_cut_off(answer: str) -> list[Highlight]:
    """Return the whole highlights in an answer that was cut off, at least one. Raises UnusableAnswer.

    The last line (in JSON, the last value) is incomplete and is dropped. If the last highlight then does not end like a
    sentence, the dropped line continued it, so the highlight is dropped, too.
    """
    plain = _unfenced(answer)
    closed = close_json(plain)
    lines = _read_lines(plain)[:-1] if closed is None else _read_lines(json_as_lines(closed))
    found = _keep_usable(_find_highlights(lines)) if any(line.marked for line in lines) else []
    if found and not found[-1].text.endswith(SENTENCE_ENDS):
        found.pop()
    if not found:
        raise UnusableAnswer("the model's answer was cut off")
    return found


def _unfenced(answer: str) -> str:
    return "\n".join(FENCE.sub("\n", spoken(answer, truncate=True)).splitlines())


def _read_lines(plain: str) -> list[AnswerLine]:
    return [read_line(line) for line in INNER_LABEL.sub(r"\n\g<0>", first_turn(plain)).split("\n")]


_FIRST_PERSON = re.compile(
    r"(?:I(?:['’](?:m|d|ve|ll))?|My|We|Our|Ich|Je) [a-zà-ÿ]|J['’][a-zà-ÿ]|Я [а-яё]"
    r"|(?:私|僕|俺)(?:は|が)|我|(?:나는|내가|저는|제가) "
)
_SAYS_I = Refusal("form", 'a highlight begins with "I", "my" or "we" instead of a name', once=True)


def _find_form_fault(answer: str) -> Refusal | None:
    """Return a refusal if a highlight begins in the first person: a later reader cannot know who that was.

    A good highlight can begin like this if a wish asks for another voice, or if the words are a title.
    """
    try:
        found = _find_highlights(_read_lines(json_as_lines(_unfenced(answer))))
    except UnusableAnswer:  # JSON that was cut off has no lines
        return None
    return _SAYS_I if any(_FIRST_PERSON.match(line.text) for line in found) else None


MEMO_PROFILE = Profile(
    read=lambda answer, _material: parse_highlights(answer),
    read_cut_off=lambda answer, _material: parse_cut_off(answer),
    text=lambda highlights: "\n".join(highlight.text for highlight in highlights) or None,
    may_quote=True,  # a highlight can quote a statement
    find_form_fault=_find_form_fault,
)

_PLACEHOLDER = re.compile(r"<[^<>]*>|[\[(][^\[\]()]*[\])]")

_PREAMBLE = re.compile(
    r"(?:here|sure|certainly|of course|okay|the (?:main |only )?highlight)\b[^:：]{0,200}[:：]\s*", re.I
)
_CHATTER = re.compile(r"[*\"“「『({\[<—]|.*[?？]$|.*\b(?:I|[Yy]ou|[Yy]our|me|my)\b")
_CLOSING = r"[\"'”’)»]*\s"
_ABBREVIATIONS = (
    *("dr", "mr", "mrs", "ms", "mx", "st", "prof", "rev", "capt", "col", "gen", "lt", "sgt", "sr", "jr", "sra", "srta"),
    *("mme", "mlle", "hr", "fr", "vs", "etc", "usw", "bzw", "ca", "гг"),
)
_NO_ABBREVIATION = "".join(rf"(?<!(?i:\b{word}))" for word in _ABBREVIATIONS) + r"(?<!\b[^\W\d_])"
_END = rf"(?:[!?]{_CLOSING}|[。！？]|{_NO_ABBREVIATION}(?<![.…])\.{_CLOSING})\s*"
_SMALL = "[a-zß-öø-ÿа-яё]"
_NEXT_SENTENCE = re.compile(
    rf"(?:[.!?…]{_CLOSING}|[。！？])\s*\w"
    rf"|{_END}(?:[\"“„«»‹「『‘']\s?|[–—]\s?(?!{_SMALL}))\w"
    rf"|(?:\.\.|…){_CLOSING}\s*[\"“„«»‹「『‘'–—]\s?(?!{_SMALL})\w"
)
"""The end of a sentence and the beginning of the next one, which can be speech.

Quotation marks after an abbreviation (`Dr. "Red" Morrow`) begin no sentence, nor do those around a small letter after
an ellipsis. A dash before a small letter goes on with the sentence.
"""

_SENTENCE_LIKE = re.compile(r"(?:\S+\s){4}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{6}")


def _find_highlights(lines: Sequence[AnswerLine]) -> list[AnswerLine]:
    by_label = any(line.labelled for line in lines)
    opening = [line.text for line in takewhile(lambda line: not line.marked, lines) if line.text]
    if not by_label and opening and refuses(opening[0]):
        raise UnusableAnswer("the model refuses", "declined")
    if not by_label and any(says_nothing(text) for text in opening):
        return [AnswerLine("NONE")]
    return join_lines(lines, by_label=by_label) or [AnswerLine(_lone_sentence(opening))]


def _lone_sentence(lines: Sequence[str]) -> str:
    """Return the only sentence in `lines`, without a preamble. Raises UnusableAnswer if there is not exactly one.

    The sentence must look like a statement about named people: no dialogue, no "I" or "you", no question. Longer prose
    is refused, because it may continue the story or comment on the task, and must not become a memory.
    """
    spoken = [line for line in lines if not line.endswith((":", "："))]
    if len(spoken) != 1:
        raise UnusableAnswer("the answer is prose that does not mark its highlights")
    sentence = _PREAMBLE.sub("", spoken[0], count=1)
    if _CHATTER.match(sentence) or _NEXT_SENTENCE.search(sentence):
        raise UnusableAnswer("the answer is not a single factual sentence")
    if not _SENTENCE_LIKE.match(sentence) or not sentence.endswith(SENTENCE_ENDS):
        raise UnusableAnswer("the answer is not a complete sentence")
    return sentence


def _keep_usable(found: Sequence[AnswerLine]) -> list[Highlight]:
    kept: dict[str, Highlight] = {}
    is_nothing = False
    for line in found:
        if refuses(line.text):
            raise UnusableAnswer("the model refuses", "declined")
        if says_nothing(line.text):
            is_nothing = True
        elif line.text and not _PLACEHOLDER.fullmatch(line.text):
            text = _shortened(without_offers(line.text))
            kept.setdefault(text, Highlight(text, line.category))
    if not kept and not is_nothing:
        raise UnusableAnswer("every highlight in the answer is blank")
    return list(kept.values())[:MAX_HIGHLIGHTS]


def _shortened(text: str) -> str:
    if len(text) <= MAX_HIGHLIGHT_CHARS:
        return text
    head = text[: MAX_HIGHLIGHT_CHARS - 1]
    words = head.rpartition(" ")[0]
    return f"{words if len(words) > len(head) // 2 else head}…"
