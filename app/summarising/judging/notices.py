"""Finds error messages and placeholders in place of a text, and copied stamps of messages. Pure.

An error message consists of sentences in which each word is a word of services, and at least one of them reports a
fault as services do. A single other word, such as a name, makes it a text: "Error 404: heart not found." can be the
entry of a character that is an AI. A chat can be about errors, too, so a fault that the material names is accepted. A
common word does not name a fault: "trial and error" is no error message.
"""

import re
from collections.abc import Collection, Sequence

from app.kit.refusals import Refusal
from app.summarising.judging.speech import fold, fold_names, split_sentences

_ERROR = Refusal("form", "the answer is an error message instead of the text")
_PLACEHOLDER = Refusal("form", "the answer is a placeholder instead of the text")

_MOST_CHARS = 300
_MOST_SENTENCES = 4

_COMMON = (
    "a about after again all an and any as at be because been but by can can't cannot check could couldn't current "
    "currently due few for from had has have however in is it its later many maximum minute minutes moment more no "
    "not now occurred of on only or our out please plan reduce retries seconds shortly something soon sorry "
    "temporarily than that the there these this those time to too try trying unable until up was while with wrong "
    "you your"
)
_SERVICE = (
    "anthropic api attempts bad balance billing call capacity code completion completions connection content context "
    "credit credits data details diary endpoint entry fetch forbidden found gateway generate generated generating "
    "generation host http https input insufficient internal key large length limit limits llm long message messages "
    "model model's network object openai openrouter output overload param parse payload process processed processing "
    "prompt provide provided provider proxy quota rate reached recap received request requested requests response "
    "responses result retry returned server server's servers service size status summarise summarised summarize "
    "summarized summary support text timed timeout token tokens type unexpected unknown upstream usage went window"
)
_FAULTS = (
    "available busy denied error errors exceed exceeded exceeding exceeds exception exhausted failed invalid "
    "overloaded rejected timeout unauthorized unavailable"
)
_FAULT_WORDS = frozenset(_FAULTS.split())
_WORDS = frozenset(f"{_COMMON} {_SERVICE} {_FAULTS}".split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

_MADE = r"(?:request|response|completion|summary|recap|output|entry|content)"
_MAKING = r"(?:generat\w+|summari[sz]\w+|process\w*|parse|provide)"
_REPORTS = re.compile(
    r"\b(?:failed|error) with (?:status|error|code|http)\b"
    rf"|\b(?:failed|unable) to {_MAKING} (?:\w+ ){{0,2}}{_MADE}\b"
    rf"|\b(?:cannot|can['’]t|could not|couldn['’]t) {_MAKING} (?:\w+ ){{0,2}}{_MADE}\b"
    rf"|\b{_MADE} (?:cannot|can['’]t|could not|couldn['’]t) be {_MAKING}\b"
    r"|\b(?:model|server|service|api|provider|endpoint|gateway|proxy|upstream)s? (?:is|are) "
    r"(?:currently |temporarily |now )?(?:overloaded|unavailable|not available|busy)\b"
    r"|\b(?:error|status|code|http)(?: code)?\W{0,3}[45]\d\d\b"
    r"|\b[45]\d\d\W{1,3}(?:bad|unauthorized|forbidden|not found|too many|internal|service|gateway|error)\b"
    r"|\b(?:an|unknown|unexpected|internal|network|api|server) error (?:has )?occurred\b|\bhad an error while\b"
    r"|\berror (?:generating|processing|while|during)\b"
    r"|^\W*(?:(?:api|http|network|server|internal|unknown|unexpected|upstream|proxy|provider|request|model) ){0,2}error"
    r"\s?[:：]"
    r"|\b(?:rate|usage|token|context|length|size|quota|credit)s? (?:limit |quota )?(?:was |is |has been )?"
    r"(?:exceeded|exhausted|reached)\b"
    r"|\bexceed(?:s|ed|ing)? (?:your|the|our|this|its) (?:[\w'’]+ ){0,4}(?:limit|quota|length|window)\b"
    r"|\bmaximum context length\b|^\W*too many (?:requests|tokens)\W*$"
    r"|\b(?:context|prompt|input|request|payload) (?:is )?too (?:long|large)\b"
    r"|^\W*(?:(?:network|connection|fetch|timeout) error|fetch failed)\W*$"
    r"|\binternal server error\b|\bbad gateway\b|\bgateway timeout\b|\bservice (?:temporarily )?unavailable\b"
    r"|\b(?:request|server|model|api|upstream) (?:has )?timed out\b"
    r"|\b(?:invalid|unknown) (?:api key|response|token|request)\b|\binsufficient (?:quota|credits?|balance)\b"
    rf"|\b{_MADE} (?:currently |temporarily )?(?:unavailable|not available)\b"
    r"|^\W*no (?:response|output|completion|content|summary|text) (?:was |is )?"
    r"(?:available|generated|returned|received|provided|from the (?:model|api|server|provider))\b",
    re.I,
)
_WENT_WRONG = re.compile(r"\bsomething went wrong\b", re.I)
_ADVICE = re.compile(r"\W*(?:please|kindly|try again|retry)\b", re.I)
_MIN_FAULT_WORDS = 2
_NUMBER = re.compile(r"\d{3,}")
_APOLOGY = re.compile(r"\W*(?:i(?:['’]m| am) (?:(?:really|very|so) )?sorry|i apologi[sz]e|oops)\b", re.I)
_EXCEPTION = re.compile(
    r"\W*Traceback \(most recent call last\)|\W*(?:(?:\w{1,40}\.){1,6}\w{0,40}(?:Error|Exception)|(?:RateLimit"
    r"|API\w{0,20}|BadRequest|InternalServer|ServiceUnavailable|ContextWindowExceeded|OpenAI|Anthropic)(?:Error|Exception))"
    r"\s{0,2}(?:[:({]|$)"
)
_MOST_EXCEPTION_CHARS = 120
_NAMED = r"(?:text|content|summary|recap|(?:diary )?entry)"
_NO_ANSWER = re.compile(
    r"\W{0,3}[(\[{<]\s?(?:no|empty|missing|blank) (?:response|reply|answer|output|content|text|result|data|summary"
    r"|completion|message)s?\s?[)\]}>]\W{0,3}",
    re.I,
)
_BLANK = re.compile(
    r"\W*(?:undefined|nan|null|\[object object\])\W*"
    r"|\W{0,3}[(\[{<]\s?(?:empty|blank|continue (?:the )?(?:story|scene|roleplay|conversation)"
    rf"|insert (?:the |your )?{_NAMED}(?: here)?|(?:your )?{_NAMED} (?:goes )?here)\s?[)\]}}>]\W{{0,3}}",
    re.I,
)

_STAMP = re.compile(
    r"(?:^|(?<=[.!?…。！？\"”»」』)]))[^\S\n]{0,32}"
    r"\[\d{1,2}/\d{1,2},? \d{1,2}:\d{2}(?: ?[AP]M)?\] ?([*_]{0,3}[^\W\d_][^:：\[\]\n]{0,60})[:：]",
    re.M,
)


def find_notice(text: str, known: str) -> Refusal | None:
    """Return a refusal if all of `text` is an error message or a placeholder such as `undefined`.

    `known` is the material as `speech.fold` normalises it, one message per line. What it contains is accepted, except
    for placeholders that are no speech, such as `undefined` and `[Continue the story]`.
    """
    if len(text) > _MOST_CHARS:
        return None
    if _BLANK.fullmatch(text) or (_NO_ANSWER.fullmatch(text) and fold(text) not in known):
        return _PLACEHOLDER
    if exception := _find_exception(text):
        return None if fold(exception) in known else _ERROR
    return _ERROR if _is_error(text, known) else None


def copies_stamp(narration: str, known: str, names: Collection[str]) -> bool:
    """Whether a line or a sentence of `narration` begins like a message in a context: `[10/22 19:00] Kai: …`.

    The name must be one of `names`, or a role: `[10/22 19:00] Note: …` is no message. `known` is the material as
    `speech.fold` normalises it; a stamp that it contains does not count.
    """
    speakers = fold_names(names) | {"user", "assistant"}
    return any(
        stamp[1].strip(" *_").casefold() in speakers and fold(stamp[0]) not in known
        for stamp in _STAMP.finditer(narration)
    )


def _find_exception(text: str) -> str | None:
    """Return the name of the exception that `text` begins with, or None if it is not a short text of one line."""
    if len(text) > _MOST_EXCEPTION_CHARS or "\n" in text.strip():
        return None
    exception = _EXCEPTION.match(text)
    return exception[0] if exception else None


def _is_error(text: str, known: str) -> bool:
    sentences = split_sentences(_APOLOGY.sub("", text, count=1))
    words = {word.casefold().replace("’", "'") for sentence in sentences for word in _WORD.findall(sentence)}
    if len(sentences) > _MOST_SENTENCES or not all(word.isdigit() or word in _WORDS for word in words):
        return False
    others = [sentence for sentence in sentences if not _ADVICE.match(sentence)]
    is_advised = len(others) < len(sentences)
    reports = [one for one in others if _REPORTS.search(one) or (is_advised and _WENT_WRONG.search(one))]
    return bool(reports) and not _is_known(reports, words, known)


def _is_known(reports: Sequence[str], words: Collection[str], known: str) -> bool:
    """Whether the material contains the sentences `reports`, or one of its messages names the same fault.

    A message names it if it has all of the `words` that name a fault, and its numbers. There must be two of them, or a
    number, because each of these words is common in stories: "I was so busy today".
    """
    if all(len(_WORD.findall(one)) > 1 and fold(one) in known for one in reports):
        return True
    numbers = {word for word in words if _NUMBER.fullmatch(word)}
    named = numbers | _FAULT_WORDS.intersection(words)
    if not numbers and len(named) < _MIN_FAULT_WORDS:
        return False
    return any(all(fold(word) in message for word in named) for message in known.split("\n"))
