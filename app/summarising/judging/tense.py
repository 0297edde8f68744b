"""Finds English narrations that show a moment of a scene in the present tense, as roleplay does. Pure.

Present tense alone is no fault: a diary says "I am afraid", and a summary may say "Kai is the keeper". So the actions
of bodies are counted, such as "I lean in and kiss her" or "Kai smiles and pulls her closer". One verb in the past tense
makes the text a report. Verb forms are recognised by lists and endings.
"""

import re

_MIN_OWN_ACTIONS = 2
_MIN_ACTIONS = 3

_VERBS = (
    *("lean", "step", "reach", "pull", "push", "draw", "kiss", "brush", "touch", "stroke", "caress", "trace", "cup"),
    *(
        "smile",
        "grin",
        "smirk",
        "laugh",
        "giggle",
        "chuckle",
        "nod",
        "shrug",
        "sigh",
        "blush",
        "gasp",
        "moan",
        "shiver",
    ),
    *("tremble", "whisper", "murmur", "mutter", "breathe", "exhale", "inhale", "swallow", "hesitate", "pause", "look"),
    *("glance", "gaze", "stare", "turn", "tilt", "lift", "lower", "raise", "wrap", "press", "squeeze", "tuck", "grab"),
    *("grip", "slide", "slip", "run", "rest", "close", "open", "bite", "lick", "hug", "embrace", "kneel", "stand"),
    *("walk", "move", "melt", "bury", "nuzzle", "cling", "drag", "guide", "lead", "take", "place", "tighten", "say"),
)
_VERB = rf"(?:{'|'.join(_VERBS)})\b"
_VERB_S = rf"(?:buries|(?:{'|'.join(_VERBS)})e?s)\b"
_LY = r"(?:\w+ly |just |then |now ){0,2}"
_I_ACT = re.compile(rf"\bI {_LY}{_VERB}")
_AND_ACT = re.compile(rf"\band {_LY}{_VERB}")
_TO_SOMEBODY = re.compile(
    rf"\b{_VERB} (?:\w+ ){{0,4}}?(?:her|him|his|hers|them|their|you|your)\b"
    r"|…,? I (?:whisper|murmur|mutter|say|breathe|gasp)\b"
)
_THEY_ACT = re.compile(rf"\b(?:[Hh]e|[Ss]he|and|then|[A-Z]\w+) {_LY}{_VERB_S}")

_REFLECTS = re.compile(
    r"\bI(?:['’](?:m|ve|ll|d)\b| (?:\w+ )?(?:am|hope|fear|want|wish|think|believe|know|wonder|need|love|hate|miss"
    r"|regret|promise|feel|dream|will|must|should|can|cannot|can['’]t|do not|don['’]t|have)\b)"
)
_DIARY = re.compile(
    r"\b(?:today|tonight|yesterday|tomorrow|last night|this (?:morning|evening|afternoon|week)|diary|journal|write"
    r"|whenever|when I|(?:every|each) (?:time|day|night|morning|evening|one)|always|often|sometimes|these days|I still"
    r"|over and over|again and again)\b",
    re.I,
)
"""Words by which a diary is recognised: they name a day, a habit, or the diary itself."""

_IRREGULAR = (
    *("was", "were", "had", "did", "went", "came", "took", "gave", "knew", "began", "wrote", "spoke", "stood", "sat"),
    *("ran", "fell", "broke", "chose", "drove", "ate", "drank", "flew", "forgot", "forgave", "grew", "rang", "rose"),
    *("sang", "sank", "slept", "stole", "swam", "swore", "tore", "threw", "woke", "wore", "wept", "became", "shook"),
    *("drew", "said", "told", "asked", "wasn['’]t", "weren['’]t", "didn['’]t", "hadn['’]t"),
)
_AFTER_SUBJECT = (
    *("thought", "felt", "found", "lost", "held", "kept", "left", "made", "heard", "met", "brought", "sent", "caught"),
    *(
        "saw",
        "got",
        "hid",
        "led",
        "paid",
        "sold",
        "built",
        "bought",
        "fought",
        "taught",
        "won",
        "meant",
        "lent",
        "hung",
    ),
    *("clung", "crept", "understood", "spent", "struck"),
)
"""Forms that can be other words, too, such as past participles, so they count only after a subject or a conjunction.

Words that end in "ed" count there, and at the beginning of a sentence.
"""

_ED = r"(?!(?:bed|red|need|feed|seed|speed|shed|bleed|breed|embed|proceed|exceed|succeed)\b)[A-Za-z]\w*ed\b"
_NO_NAME = r"(?!(?:The|An?|His|Her|My|Your|Our|Their|Its|This|That|These|Those)\b)"
_PAST = re.compile(
    rf"\b(?i:{'|'.join(_IRREGULAR)})\b"
    rf"|\b(?:[Hh]e|[Ss]he|[Ii]t|[Ww]e|[Tt]hey|[Yy]ou|who|and|but|then|{_NO_NAME}[A-Z]\w*) {_LY}"
    rf"(?:(?:{'|'.join(_AFTER_SUBJECT)})\b|{_ED})"
    rf"|(?:^|(?<=[.!?…] )|(?<=\n)){_ED}"
)


def has_past(narration: str) -> bool:
    """Whether `narration` has a verb in the past tense."""
    return _PAST.search(narration) is not None


def shows_own_actions(narration: str) -> bool:
    """Whether a text in the first person shows what its author does to somebody at this moment.

    An entry of a diary can do so too, but then it also names the day or a habit, or has at least as many thoughts as
    actions.
    """
    if has_past(narration) or _DIARY.search(narration) or not _TO_SOMEBODY.search(narration):
        return False
    own = len(_I_ACT.findall(narration))
    actions = own + len(_AND_ACT.findall(narration)) if own else 0
    return actions >= _MIN_OWN_ACTIONS and actions > len(_REFLECTS.findall(narration))


def shows_actions(narration: str) -> bool:
    """Whether a text in the third person shows what somebody does at this moment."""
    return len(_THEY_ACT.findall(narration)) >= _MIN_ACTIONS and not has_past(narration)
