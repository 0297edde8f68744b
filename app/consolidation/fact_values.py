"""Reads the value of a fact from the words that follow "is". Pure.

A value ends at a comma or a dash ("green, of course"), before a reason ("because …"), and before words that add nothing
("green though"). Words that express doubt or denial ("I think", "not", "lol") and words that are no value ("in Lisbon",
"anything") give no value.
What is favourite must be named. "My favourite mug is blue" and "My favourite aunt is visiting us" only describe it. So
a word without a capital is a value only for the kinds of things in `_KINDS`, such as colours.
"""

import re
from datetime import date

from app.summarising.sentences import find_terms

MAX_VALUE_CHARS = 60

_FILLER = (
    r"(?:actually|definitely|certainly|honestly|obviously|of course|for sure|hands down|by far|still|also|now|nowadays"
    r"|these days|though|tho|sadly|unfortunately|alas|too|as well|by the way|btw|etc)"
)
_FIRST_FILLERS = re.compile(rf"(?:{_FILLER}[, ]\s*)+")  # only in lower case: `Still Alice` can be a title
_LAST_FILLERS = re.compile(rf"(?:[, ]\s*{_FILLER})+$")
DOUBT = re.compile(
    r"\b(?:not|never|no longer|maybe|perhaps|probably|possibly|likely|think|guess|believe|suppose|assume|sure|hope|wish"
    r"|or|either|depends|if|when|whenever|unless|except|only|but|almost|mostly|usually|sometimes|kind of|sort of|kinda"
    r"|used to|was|were|would|could|supposed|today|tonight|right now|at the moment|for now|this week|lol|lmao|rofl|jk"
    r"|ha(?:ha)+|hehe\w*|kidding|joking|jokes?|allegedly|supposedly|hypothetically|theoretically"
    r"|in (?:an?|the|this|that|my|our) (?:game|story|novel|dream|role-?play|rp))\b",
    re.I,
)
"""Words that express doubt or denial, or that limit a statement."""
_OWN_NAME = r"my (?:\w{1,20} )?(?:name|character(?:['’]s name)?|persona|alias)"
_TAKEN_BACK = re.compile(
    r"[\s,;.!…)\"”»–—-]{0,9}(?:(?:well|but|actually|okay|ok|um|uh|oh)[,.… ]{1,2}){0,2}(?:"
    r"(?:lol|lmao|rofl|ha(?:ha)+|jk|maybe|perhaps|probably|possibly|supposedly|allegedly|or so"
    r"|not (?:really|actually|true|any ?more)|i (?:think|guess|suppose|believe|hope|wish|assume)|i(?: am|['’]m) lying"
    r"|if i (?:remember|recall)(?: (?:correctly|right|rightly))?"
    rf"|(?:that|it|this)(?:['’]s| is| was) (?:not (?:true|right|real|{_OWN_NAME})|a lie|a joke|fake|false|untrue)"
    rf"|(?:that|it|this) (?:is|was)n['’]t (?:true|right|real|{_OWN_NAME})"
    r"|(?:that|it|this)(?:['’]s| is| was) my (?:\w{1,20} )?(?:character(?:['’]s name)?|persona|alias)"
    r"|nicht wirklich|vielleicht|glaube? ich|(?:es )?mentira|quizás|peut-être|pas vraiment)[^\w]{0,9}$"
    r"|no,? wait\b|wait, no\b|scratch that\b|if i(?: am|['’]m) not (?:mistaken|wrong)\b"
    r"|no,? (?:it['’]s|it is|that['’]s) (?-i:[A-ZÀ-Þ]))",
    re.I,
)
"""Words that take back what is before them: `, lol.`, `Not really.`, `No, wait`."""
_DENIAL = re.compile(r"n['’]t\b", re.I)
_ASIDE_WORDS = (
    r"(?:i|we|you|yours?|my|our|he|she|it|its|they|that|this|there|what|please|don['’]t)(?:['’](?:m|s|ve|ll|d|re))?\b"
)
_ASIDE = re.compile(rf"(?:because|since|which|so|(?:and )?{_ASIDE_WORDS})", re.I)
"""The beginning of a remark that does not change the value before it."""
_VALUE_END = re.compile(rf",\s*|\s+[-–—]+\s+|\s+(?=(?:because|since|which|and {_ASIDE_WORDS})\b)", re.I)
_NO_VALUE = re.compile(
    r"(?:when|how|that|this|these|those|to|one|it|what|where|who|because|so|very|too|quite|pretty|really|such|just"
    r"|always|already|finally|currently|any\w*|some\w*|every\w*|no\w*|whatever|all|both|hard|tough|tied?|impossible"
    r"|in|on|at|near|about|from|over|under|out|off|back|here|being|having|getting|going|coming|playing|losing|winning"
    r"|broken|gone|closed|dead|dirty|ruined|missing|cancell?ed|you|him|her|them|us|me|people)\b",
    re.I,
)
_MARKS = re.compile(r"[.!?,;:…\"“”()]")
_LAST_MARKS = re.compile(r"[^\w+#%]+$")
_KINDS = frozenset(
    find_terms("""
    activity animal berry beverage beer bird breakfast cake candy cheese chocolate cocktail class cocoa coffee color
    colour condiment course cream cuisine dance day dessert dinner dinosaur dish drink element editor emoji exercise
    fabric fish flavor flavour flower font food framework fruit game gem gemstone genre hobby holiday insect instrument
    juice language letter liquor lunch meal metal mineral month music number nut pasta pastime pie pizza planet plant
    salad sandwich sauce scent season shade shape smell snack soda soup spice sport stone stroke subject tea thing
    topping tree vegetable veggie weekday whiskey whisky wine wood word workout
    """)
)
"""What has values that are written without a capital: `My favourite colour is green`."""
_ACTIVITIES = frozenset(("activity", "class", "course", "exercise", "hobby", "pastime", "sport", "subject", "thing"))
_ACTION = re.compile(
    r"(?!(?:spring|pudding|stuffing|dumpling|herring|starling|icing|string|king|ring|wing|sterling|morning|evening)\b)"
    r"[a-z]{2,}ing\b"
)
"""What something does now: `visiting us`. For the kinds of `_ACTIVITIES` it is a value: `hiking`."""
_STATE = re.compile(
    r"(?:[a-z]+[^e\W]ed|amazing|awesome|awful|back|bad|beautiful|better|best|boring|cheap|cold|cool|crazy|cute|delicious"
    r"|done|easy|empty|endangered|expensive|extinct|fine|full|fun|funny|good|great|healthy|hot|huge|ill|important|late"
    r"|lovely|lucky|new|nice|ok|okay|old|over|popular|rare|ready|right|sad|safe|sick|simple|special|spicy|tasty"
    r"|terrible|true|unhealthy|unique|wonderful|wrong|yummy)(?:$| (?:and|as|at|by|for|on|than|to|when|with)\b)"
    r"|(?:changing|classified|complicated|confidential|different|irrelevant|more|most|mine|obvious|personal|private"
    r"|secret|top secret|now|then|tomorrow|yesterday|unclear|undecided|unimportant|unknown|yours?"
    r"|after|among|around|as|before|behind|between|by|during"
    r"|for|if|into|like|of|than|through|towards?|under|until|up|with|without|within)\b"
)
"""A state, or where something is, at the beginning of a value without a capital: `ready`, `under the bed`."""
_RIDDLE = re.compile(
    r"(?:(?:[Aa]n?|my|our|the) )?(?:(?:\w+ )?(?:secret|myster(?:y|ies)|surprise|riddle|joke|lie|mess|disaster"
    r"|question|problem|long story|matter of \w+|toss-?up|tie)(?:$| )"
    r"|ones?\b|same\b|only\b|best\b|worst\b|last\b|next\b|first\b)"
)
"""Words in place of a value: `a secret`, `the one that you wear`."""
_PRONOUN = re.compile(
    r"\b(?:you|your|yours|we|us|our|he|him|his|she|her|they|them|their|it|its|i|my|mine|me|whose|who|which|that|is|are|am"
    r"|has|have|had|will|makes?)\b"
)
_ORIGIN = re.compile(
    r"(?:\w+(?:ish|ese)|Afric|Americ|Mexic|Dominic|Puerto Ric|French|German|Dutch|Greek|Thai|Czech|Swiss|Welsh|Arab"
    r"|Italian|Canadian|Australian|Indian|Russian|Asian|Brazilian|Norwegian|Hungarian|Romanian|Bulgarian|Ukrainian"
    r"|Iranian|Egyptian|Korean|Chilean|European|Catholic|Jewish|Muslim|Buddhist|Hindu)(?:an)?$"
)
_NAMED = re.compile(r"(?:the )?[^\W_a-zß-öø-ÿ]")
"""The beginning of a name or a number."""
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_MONTH_NAME = re.compile(_MONTH, re.I)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LEAP_YEAR = 2000
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"(?:(?:the )?{_DAY}(?: of)? {_MONTH}|{_MONTH} (?:the )?{_DAY}|\d{{1,2}}[./-]\d{{1,2}}(?:[./-]\d{{2,4}})?)"
    r"(?:,? (?:19|20)\d\d)?(?![\w/-])|\d{4}-\d\d-\d\d(?!\w)",
    re.I,
)


def read_favourite(kind: str, said: str) -> str | None:
    """Return the value with which `said` begins, or None if there is none or it is in doubt.

    `said` is the rest of a sentence after words such as "my favourite colour is"; `kind` is the `colour`.
    """
    value, rest = _divide(strip_filler(said))
    return value if _is_value(value) and is_aside(rest) and _is_named(kind, value) else None


def read_date(said: str) -> str | None:
    """Return the date with which `said` begins, as it is written; None if there is none or it is in doubt."""
    bare = strip_filler(said)
    found = _DATE.match(bare)
    return found[0] if found and _exists(found[0]) and is_aside(bare[found.end() :].lstrip(", ")) else None


def strip_filler(said: str) -> str:
    """Return `said` without the words and marks at its ends that add nothing."""
    first = _FIRST_FILLERS.match(said)
    bare = said[first.end() if first else 0 :].strip()
    if "…" in bare or "..." in bare:
        return bare
    return _LAST_FILLERS.sub("", _LAST_MARKS.sub("", bare))


def is_aside(rest: str) -> bool:
    """Return whether the text after a value does not change the value."""
    return not rest or (_ASIDE.match(rest) is not None and not DOUBT.search(rest) and not takes_back(rest))


def takes_back(said: str) -> bool:
    """Return whether a text begins with words that take back what is before it: a laugh, a doubt or a correction."""
    return _TAKEN_BACK.match(said) is not None


def _divide(said: str) -> tuple[str, str]:
    """Return `said` up to the end of its value, and the rest."""
    end = _VALUE_END.search(said)
    if end is None:
        return said, ""
    return _LAST_FILLERS.sub("", said[: end.start()]), said[end.end() :]


def _is_value(value: str) -> bool:
    return (
        len(value) <= MAX_VALUE_CHARS
        and any(map(str.isalnum, value))
        and not _MARKS.search(value)
        and not _NO_VALUE.match(value)
        and not DOUBT.search(value)
        and not _DENIAL.search(value)
    )


def _is_named(kind: str, value: str) -> bool:
    """Whether `value` names a thing of this kind, instead of describing it or saying nothing of it."""
    noun = kind.split()[-1].casefold()
    if _RIDDLE.match(value) or _PRONOUN.search(value):
        return False
    if _NAMED.match(value):
        return noun in _KINDS or not _ORIGIN.fullmatch(value)
    return (
        noun in _KINDS
        and not _STATE.match(value)
        and not re.search(r"\bI\b", value)
        and (noun in _ACTIVITIES or not _ACTION.match(value))
    )


def _exists(written: str) -> bool:
    """Whether a date that has the form of `_DATE` is in the calendar. `04/07` is read in both orders."""
    numbers = [int(digits) for digits in re.findall(r"\d+", written)]
    month = _MONTH_NAME.search(written)
    if month:
        day, year = numbers[0], numbers[1] if len(numbers) > 1 else _LEAP_YEAR
        return _is_date(year, _MONTHS.index(month[0][:3].casefold()) + 1, day)
    if len(str(numbers[0])) == len("2000"):
        return _is_date(*numbers[:3])
    year = numbers[2] if len(numbers) > 2 else _LEAP_YEAR
    return any(_is_date(year if year > 99 else 2000 + year, *pair) for pair in (numbers[:2], numbers[1::-1]))


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
