"""Finds sentences about the task instead of the story: requests for material, remarks out of character, thoughts. Pure.

Each pattern is applied to one sentence, and each of its gaps is bounded, so the time is linear.
"""

import re

from app.kit.refusals import Refusal
from app.summarising.judging.speech import fold, split_sentences

_ASKS = Refusal("form", "the answer asks for material instead of using what was given")
_OUT_OF_CHARACTER = Refusal("story", "the answer goes on with the roleplay: it is a remark out of character")
_THINKS = Refusal("form", "the answer is about the task")

_MATERIAL = r"(?:messages|conversation|transcript|chat (?:log|history)|entries|scenes?|recaps?|material)"
_WANTS_MATERIAL = re.compile(
    r"^\W*(?:sorry,? |so,? )?(?:please|could you|can you|would you|kindly|once you|if you)\b.{0,40}?"
    rf"\b(?:provide|share|paste|upload|supply|attach)\b.{{0,60}}?\b(?:{_MATERIAL}|text|content)\b",
    re.I,
)
_LACKS_MATERIAL = re.compile(
    r"^\W*(?:(?:it (?:seems|looks|appears)|there (?:is|are) no(?:t any)?"
    r"|i (?:do not|don['’]t|can['’]?t|cannot) (?:see|find|have)"
    rf"|you (?:have not|haven['’]t|did not|didn['’]t))\b.{{0,40}}?|no (?:new )?)\b{_MATERIAL}\b.{{0,60}}?"
    r"\b(?:provided|shared|attached|supplied|to (?:summari[sz]e|fold|work with))\b",
    re.I,
)
_REMARK = re.compile(r"^\W{0,3}[(\[{]\s?OOC\b|^\W{0,3}OOC\s?[:：-]|^\W{0,3}\(\(|^\W{0,2}\[(?:system|narrator)\b", re.I)

_TASK = re.compile(
    r"^\W*(?:so,? |okay,? |first,? )?(?:"
    r"the user (?:wants|asks|asked|is asking|has asked) (?:me|us)\b"
    r"|(?:we are|we['’]re|i am|i['’]m) (?:being )?asked to\b|(?:my|the) task is to\b"
    r"|the (?:former|previous|existing) (?:summary|recap|diary) (?:tells|says|mentions|states|ends|covers|contains)\b"
    r"|the (?:new|updated) (?:summary|recap|diary) (?:should|must|needs)\b"
    r"|(?:we|i) (?:need|have|must|should)(?: to)? (?:now )?(?:fold|summari[sz]e|rewrite|compress|output|update|produce"
    r"|write) (?:the|a|an|all) (?:\w+ )?(?:summary|recap|messages|diary|entry|entries)\b)",
    re.I,
)
_REPEATS = re.compile(r"\bthe (?:former|previous) (?:summary|recap|diary) is (?:given|repeated|returned)\b", re.I)
_THOUGHT = re.compile(
    r"^\W*(?:(?:draft|final(?: (?:answer|version|text))?|new(?: messages)?|check(?: length)?|plan|thinking|word count)"
    r"\s?(?:[:.]|$)|(?:that|this) (?:seems|looks|is) (?:good|fine|right)\b|wait\b"
    r"|(?:now |also )?(?:need to|must|should) (?:add|keep|mention|include|note)\b"
    r"|let(?:['’]s| us| me) (?:draft|write|count|check|fold|combine)\b)",
    re.I,
)
_MIN_THOUGHTS = 2


def find_remark(narration: str, *, first_person: bool, former: str = "") -> Refusal | None:
    """Return a refusal if a sentence of `narration` is about the task, is out of character, or asks for material.

    A diary may contain thoughts ("Must mention the lamp."), so these do not count there. A sentence of the former text
    is not judged again; `former` is that text as `speech.fold` normalises it.
    """
    sentences = [sentence for sentence in split_sentences(narration) if fold(sentence) not in former]
    for sentence in sentences:
        if _WANTS_MATERIAL.match(sentence) or _LACKS_MATERIAL.match(sentence):
            return _ASKS
        if _REMARK.match(sentence):
            return _OUT_OF_CHARACTER
        if _TASK.match(sentence) or _REPEATS.search(sentence):
            return _THINKS
    thoughts = 0 if first_person else sum(1 for sentence in sentences if _THOUGHT.match(sentence))
    return _THINKS if thoughts >= _MIN_THOUGHTS else None
