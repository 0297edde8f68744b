"""Finds sentences about the task instead of the story: requests for material, remarks out of character, thoughts. Pure.

Each pattern is applied to one sentence, and each of its gaps is bounded, so the time is linear.
"""

import re

from app.kit.refusals import Refusal
from app.summarising.judging.speech import fold, split_sentences

_ASKS = Refusal("form", "the answer asks for material instead of using what was given")
_OUT_OF_CHARACTER = Refusal("story", "the answer goes on with the roleplay: it is a remark out of character")
_THINKS = Refusal("form", "the answer is about the task")
_DESCRIBES = Refusal("form", "the answer describes the roleplay or the task instead of the story", once=True)

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
_ROLEPLAY = r"(?:role-?play|RP)"
_PLAYS = r"(?:writes|plays|role-?plays|speaks|acts) (?:as|the (?:role|part|character))\b"
_DESCRIPTION = re.compile(
    r"^\W*(?:this|the (?:conversation|chat|exchange|dialogue|transcript|text))"
    r" (?:is|seems to be|appears to be|depicts|describes|contains|shows) an? (?:(?!is\b)[\w-]+,? ){0,3}?"
    rf"{_ROLEPLAY}\b.{{0,60}}?\b(?:between|in which|where|involving|user|AI)\b"
    rf"|^\W*the user {_PLAYS}.{{0,80}}?\bthe (?:AI|assistant|model|bot) (?:{_PLAYS}|responds\b)",
    re.I,
)
_ANNOUNCEMENT = re.compile(
    r"^\W*(?:the user (?:wants|asks for|asked for)|(?:let me|i(?:['’]ll| will)) (?:analy[sz]e|summari[sz]e|break down))"
    r" (?:(?:a|an|the) (?:\w+ )?(?:summary|recap|entry) (?:of|about|for) )?(?:this|the|these) (?:\w+ )?"
    rf"(?:{_ROLEPLAY}|conversation|chat (?:log|history)|messages|transcript)\b(?! (?:with|from|that)\b)",
    re.I,
)
_CHATTER = re.compile(r"\W*(?:great|good|excellent) question[!.,] (?:so,? )?here(?:['’]s| is| are)\b", re.I)
"""These three are about the task or the roleplay. A chat can be about them, too, so they are refused only once."""

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

    A diary may contain thoughts ("Must mention the lamp."), so these do not count there. A sentence that describes the
    roleplay is refused once. A sentence of the former text is not judged again; `former` is that text as `speech.fold`
    normalises it.
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
    if thoughts >= _MIN_THOUGHTS:
        return _THINKS
    is_about = _CHATTER.match(narration) or any(
        _DESCRIPTION.match(one) or _ANNOUNCEMENT.match(one) for one in sentences
    )
    return _DESCRIBES if is_about else None
