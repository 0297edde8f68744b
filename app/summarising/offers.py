"""Recognises the offers and notes to the reader that models add after a text. Pure."""

import re

_OFFER = re.compile(
    r"\(?(?:(?:please )?let me know (?:if|whether) (?:you(?:['’]d| would| want| need)?(?: like| want| need)?"
    r" (?:me to|any|more|further|another|changes|adjustments|a (?:different|shorter|longer))|anything|this works)"
    r"|(?:would you like|do you want) me to (?:continue|expand|adjust|revise|change|shorten|add|rewrite|summari[sz]e)\b"
    r"|(?:please )?feel free to (?:ask|adjust|reach out|request|let me know)\b"
    r"|i hope this (?:helps|works|summary|recap|meets|captures)\b|is there anything else you(?:['’]d| would) like\b"
    r"|if you(?:['’]d| would) like (?:me to|any changes|more detail|adjustments)\b"
    r"|i(?:['’]d| would) be happy to (?:expand|adjust|revise)\b"
    r"|note[:,]? [^.!?]{0,100}\b(?:this (?:summary|recap|entry)|explicit|guidelines|omitted)\b)",
    re.I,
)
_REMARK = re.compile(r"[(\[]{1,2}\s?OOC\b")
_SENTENCE_START = re.compile(r"(?<=[.!?…”\"’)])\s+(?=\S)")


def offers(sentence: str) -> bool:
    """Whether `sentence` offers to change the text, is a note about it, or a remark out of character.

    Only the usual phrases count, because a diary can say "Let me know" too.
    """
    return _OFFER.match(sentence) is not None or _REMARK.match(sentence) is not None


def without_offers(line: str) -> str:
    """Return `line` without the offers, or the remark out of character, at its end. Its first sentence stays."""
    starts = [found.end() for found in _SENTENCE_START.finditer(line)]
    for start in starts:
        if _REMARK.match(line, start) and line.rstrip().endswith((")", "]")):
            return line[:start].rstrip()
    end = len(line)
    while starts and _OFFER.match(line, starts[-1]):
        end = starts.pop()
    return line if end == len(line) else line[:end].rstrip()
