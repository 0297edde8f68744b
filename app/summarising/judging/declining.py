"""Finds the sentence in which a model declines the task, or a provider blocks it, in the major languages. Pure.

A sentence declines if its author cannot or does not want to do what the prompts ask for: to summarise, to write, to
continue. A good narration in the third person never contains such a sentence. A diary may, because its author can be
unable to write, and can be an AI. So in a text in the first person, the sentence must also name the task (explicit
content, a usage policy, a summary of this conversation) in words that the material does not contain. If an answer in
the first person is only a refusal that names no task, such as "I can't help with that.", the parser of the diary
recognises it (`app/diary/refusals.py`).

Each pattern is applied to the beginning of one sentence, so the time is linear.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.kit.refusals import Refusal
from app.summarising.judging.declining_words import ENGLISH_MARKS, ENGLISH_POLICY, LANGUAGES
from app.summarising.judging.speech import fold, split_sentences

_DECLINED = Refusal("declined", "the model refuses")
_LEFT_OUT = Refusal("form", "the answer says that something explicit was left out", once=True)

_MOST_CHARS = 600
"""Refusals are shorter than this; the rest of a longer sentence is not examined."""


def find_declining(narration: str, *, first_person: bool, known: str = "", former: str = "") -> Refusal | None:
    """Return a refusal if a sentence of `narration` declines the task, or says that content was blocked.

    `known` and `former` are the material and the former text as `speech.fold` normalises them. Sentences that the
    former text contains are not judged again.
    """
    sentences = split_sentences(narration)
    if first_person and _only_refuses(sentences, known):
        return _DECLINED
    is_whole = sum(1 for sentence in sentences if not _ADVICE.match(sentence)) == 1
    for sentence in sentences:
        said = sentence[:_MOST_CHARS]
        declines = _is_notice(said, known, is_whole=is_whole) or any(
            words.declines(said, known, must_name_task=first_person) for words in _LANGUAGES
        )
        if declines and fold(sentence) not in former:
            return _DECLINED
    return None


def find_omission(narration: str, known: str) -> Refusal | None:
    """Return a refusal if `narration` begins or ends with a notice that something explicit was left out.

    A story can say so of a conversation, too, so it is refused only once. `known` is the material as `speech.fold`
    normalises it; what it contains is no notice.
    """
    sentences = split_sentences(narration)
    said = (sentence[:_MOST_CHARS] for sentence in {*sentences[:1], *sentences[-1:]})
    return _LEFT_OUT if any(_is_any_new(_OMITTED, sentence, known) for sentence in said) else None


@dataclass(frozen=True, slots=True)
class _Language:
    """How models decline in one language.

    Attributes:
        unable: Phrases such as "I cannot" or "I am not comfortable", with a verb for the declined task.
        task: Tasks and reasons that only a model is likely to name when it declines.

    """

    unable: re.Pattern[str]
    task: re.Pattern[str]

    def declines(self, sentence: str, known: str, *, must_name_task: bool) -> bool:
        """Whether `sentence` declines; with `must_name_task` only if it names the task in words not in `known`."""
        if not self.unable.search(sentence):
            return False
        return not must_name_task or _is_any_new(self.task, sentence, known)


_LANGUAGES = tuple(
    _Language(re.compile("|".join(words.unable), re.I), re.compile("|".join(words.task), re.I)) for words in LANGUAGES
)

_MOST_SENTENCES = 6
_MIN_MARKS = 2
_MARK = re.compile(rf"\b(?:{'|'.join(ENGLISH_MARKS)})\b", re.I)
_FILLER = re.compile(r"\W*(?:i(?:['’]m| am) (?:(?:really|very|so) )?sorry|sorry|i apologi[sz]e|unfortunately)\b", re.I)


def _only_refuses(sentences: Sequence[str], known: str) -> bool:
    """Whether a few English sentences are only a refusal.

    Each of them declines, apologises or has a word of `ENGLISH_MARKS`, and at least one declines. Together they have at
    least two such words that are not in `known`.
    """
    said = [sentence[:_MOST_CHARS] for sentence in sentences]
    if not 0 < len(said) <= _MOST_SENTENCES or not any(map(_LANGUAGES[0].unable.search, said)):
        return False
    marks = [{fold(mark) for mark in _find_all(_MARK, sentence)} for sentence in said]
    return len({mark for found in marks for mark in found if mark not in known}) >= _MIN_MARKS and all(
        found or _FILLER.match(sentence) or _LANGUAGES[0].unable.search(sentence)
        for found, sentence in zip(marks, said, strict=True)
    )


_THING = r"(?:content|response|message|output|text|prompt|request|answer)s?"
_WITHHELD = (
    r"(?:summary|recap|diary entry) (?:is |was |has been )?"
    r"(?:unavailable|not available|withheld|omitted|filtered|redacted|blocked)"
)
_REASON = (
    r"safety|security|filter\w*|polic(?:y|ies)|moderat\w+|guidelines|terms|standards|violat\w+|inappropriate|explicit"
    r"|sexual\w*|nsfw|harmful|unsafe|sensitive|prohibited|disallowed|content"
)
_FILTERED = r"(?:filtered|blocked|removed|redacted|unavailable|hidden|censored|withheld|flagged|moderated)"
_WHY_FILTERED = rf"\W+(?:by|due to|because|for|as|flagged)\b.{{0,60}}?\b(?:{_REASON})\b.{{0,60}}"
_BLOCKED = re.compile(
    rf"\W*(?:(?:the|this|your|my) )?{_THING} (?:was |has been |is |were )?{_FILTERED}(?:{_WHY_FILTERED})?\W*"
    rf"|\W*(?:(?:the|this|your) )?{_WITHHELD}{_WHY_FILTERED}"
    rf"|\W*{_FILTERED}{_WHY_FILTERED}|\W*redacted\W*|.*\b(?:content_filter|prohibited_content)\b.*",
    re.I,
)
_ADVICE = re.compile(
    r"\W*(?:please|kindly|try) (?:try|again|modify|revise|rephrase|adjust|edit|change|contact)\b", re.I
)
_ABOUT_REQUEST = re.compile(
    r"\W*(?:(?:however|unfortunately|sorry),? )?(?:the|this|that|your|it)\b (?:\w+ ){0,3}?"
    rf"(?:{_THING}|material|input|conversation|entries|is)\b",
    re.I,
)
_WHY = re.compile(
    rf"\bviolat(?:es?|ing|ed) (?:our|my)\b|\b{ENGLISH_POLICY}\b"
    r"|\b(?:cannot|can['’]t|could not) be (?:fulfilled|completed|processed|summari[sz]ed)\b",
    re.I,
)
_EXPLICIT = r"(?:intimate|explicit|sexual\w*|adult|mature|graphic|erotic|nsfw|inappropriate)"
_OMITTED = re.compile(
    r"\b(?:(?:(?:rest|remainder|remaining parts?|parts?|portions?|details) of (?:the|this) (?:\w+ )?|remaining )"
    r"(?:conversation|chat|exchange|messages|interaction|role-?play)|explicit (?:details|parts))"
    r" (?:is|are|was|were|has been|have been) (?:omitted|left out|redacted|excluded|skipped"
    r"|not (?:included|summari[sz]ed))(?: here| from (?:this|the) (?:summary|recap|diary|entry))?,? "
    rf"(?:because|due to|as|since|for|owing to)\b.{{0,60}}?\b{_EXPLICIT} (?:\w+ )?(?:content|material|nature|themes?)\b"
    r"|^\W*(?:the )?(?:rest|remainder) (?:is|was|has been) (?:omitted|redacted|not summari[sz]ed)(?: here)?,? "
    rf"(?:because|due to|as|since)\b.{{0,60}}?\b{_EXPLICIT} (?:\w+ )?(?:content|material)\b",
    re.I,
)


def _is_notice(sentence: str, known: str, *, is_whole: bool) -> bool:
    """Return whether `sentence` says that a filter or a policy blocked the request, in words that are not in `known`.

    A sentence such as "The message was removed." counts only if it is the whole answer, apart from advice to try again
    (`is_whole`). If the sentence gives a reason, the reason must be typical of filters.
    """
    if is_whole and _BLOCKED.fullmatch(sentence):
        return fold(sentence) not in known
    return _ABOUT_REQUEST.match(sentence) is not None and _is_any_new(_WHY, sentence, known)


def _is_any_new(pattern: re.Pattern[str], sentence: str, known: str) -> bool:
    return any(fold(phrase) not in known for phrase in _find_all(pattern, sentence))


def _find_all(pattern: re.Pattern[str], sentence: str) -> Iterator[str]:
    return (found[0] for found in pattern.finditer(sentence))
