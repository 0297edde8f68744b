"""Facts that a user states in words that leave no doubt, such as "My name is Mira." Pure.

A wrong fact is worse than a missing one. So the sentence must begin with one of the patterns. `said_names.py`,
`fact_values.py` and `allergens.py` refuse doubtful values. A message that quotes and narrates, such as `"My name is
Anna," she lies.`, states no facts, because a character could be the speaker. A message that jokes, or that speaks of a
dream or a lie, states no facts either. Nor does a sentence that the next one takes back ("Not really."), a quoted line
(`> My name is Kai.`), or what follows an action that need not be the user's, as in
`*The demon grins.* My name is Legion.`
"I'm Jonas" gives no name: "I'm Irish" has the same form.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from app.consolidation.allergens import read_allergens
from app.consolidation.fact_values import read_date, read_favourite, takes_back
from app.consolidation.said_names import CAPITAL_WORD, LEAD, read_name
from app.consolidation.unreal import is_invented
from app.facts.keys import normalise_key
from app.summarising.judging.speech import count_letters, divide
from app.summarising.sentences import Kind, split_sentences
from app.summarising.transcript import Utterance

_MOST_CHARS = 8_000
_QUOTES = "\"'“”„«»「」『』*_ "

_ACTION = re.compile(
    r"(?<![^\W_])(?<![^\W_] )(?:\*{1,2}(?P<stars>[^*\s][^*]{1,500})\*{1,2}|_(?P<line>[^_\s][^_]{1,500})_(?!\w))"
)
"""An action: words between stars or underscores that do not follow a word, unlike emphasis (`I love *the* sea`)."""

_SOMEBODY = re.compile(
    r"\s*(?:(?i:the|an?|he|she|they|it|his|her|their|der|die|das|eine?|er|sie|el|la|los|una?|ella|les?|une|elle|il)\b"
    rf"|{CAPITAL_WORD} (?!his\b|is\b|as\b|this\b)[a-z]+s\b)"
)
"""The beginning of an action that need not be the user's: `The demon grins`, `She smiles`, `Vex enters`."""

_SAYS = r"(?:said|says|asked|replied|replies|whispered|whispers|growled|growls|lied|lies)"
_PLAYS = re.compile(
    rf"(?i:[,!?…][\"”»]? {_SAYS} (?:the|an?|he|she|they|nobody|no one)\b"
    rf"|,[\"”»]? (?:(?:the|an?) \w+|he|she|they) {_SAYS}\b"
    r"|(?<!not )(?<!no )(?<!n['’]t )\b(?:(?:just|only) )?(?<!not just )(?<!not only )(?:kidding|joking)\b"
    r"|\blet['’]?s (?:play|pretend)\b)"
)
"""The speaker after a quotation, or words about a game or a joke."""
_CODE = re.compile(r"```.*?```", re.S)
_QUOTED_LINE = re.compile(r"\s*>(?:\s|$)")

_FAVOURITE = re.compile(
    rf"(?i:{LEAD}my (?:all[- ]time |absolute )?(?P<key>favou?rite [a-z]{{2,20}}(?: [a-z]{{2,20}})?) is )(?P<said>.+)"
)
_BIRTHDAY = re.compile(rf"(?i:{LEAD}my birthday is (?:actually )?(?:on )?)(?P<said>.+)")
_DEGREE = (
    r"(?:also|actually|still|really|very|highly|so|super|quite|pretty|just|terribly|horribly|severely|seriously|badly"
    r"|mildly|strongly|slightly|extremely|violently|deathly)"
)
_ALLERGY = re.compile(rf"(?i:{LEAD}i(?: am|['’]?m) (?:{_DEGREE} ){{0,2}}allergic to )(?P<said>.+)")


class Stated(NamedTuple):
    """A fact that a message states.

    Attributes:
        key: What it is about.
        value: Its value.
        is_firm: Whether it may replace what a model or a tool has written. A name after "Call me" may not.

    """

    key: str
    value: str
    is_firm: bool = True


def find_facts(utterance: Utterance) -> Iterator[Stated]:
    """Yield the facts that a message of the user states beyond doubt, in order. Other roles state none."""
    text = utterance.text[:_MOST_CHARS]
    if utterance.role != "user":
        return
    spoken = _list_statements(text)
    if _narrates(" ".join(spoken)) or _PLAYS.search(text) or is_invented(text):
        return
    scene = _find_scene(text)
    if scene is not None:
        spoken = _list_statements(text[:scene])
    elif len(utterance.text) > _MOST_CHARS:
        spoken = spoken[:-1]  # it can be cut off within a value
    bare = [said.strip(_QUOTES) for said in spoken]
    numbered = [(number, said) for number, said in enumerate(bare) if said]
    for (number, said), (next_number, following) in zip_longest(numbered, numbered[1:], fillvalue=(0, "")):
        if next_number == number + 1 and takes_back(following):
            continue
        name = read_name(said, following)
        if name is not None:
            yield Stated("name", *name)
        for label, value in _find_others(said):
            key = normalise_key(label)
            if key is not None:
                yield Stated(key, value)


def _list_statements(text: str) -> list[str]:
    """Return the statements of a text, with "" for each question or action.

    Lines that the text quotes (`> …`) and blocks of code are left out.
    """
    lines = _CODE.sub("\n", text).splitlines(keepends=True)
    own = "".join(line for line in lines if not _QUOTED_LINE.match(line))
    return ["".join(one.clauses) if one.kind is Kind.STATEMENT else "" for one in split_sentences(own)]


def _find_others(said: str) -> Iterator[tuple[str, str]]:
    """Yield the facts of a sentence that are not names. Each allergy has its own key, so none replaces another."""
    if favourite := _FAVOURITE.match(said):
        value = read_favourite(favourite["key"], favourite["said"])
        if value is not None:
            yield favourite["key"], value
    if birthday := _BIRTHDAY.match(said):
        date = read_date(birthday["said"])
        if date is not None:
            yield "birthday", date
    if allergy := _ALLERGY.match(said):
        yield from ((f"allergic_to_{one}", one) for one in read_allergens(allergy["said"]))


def _find_scene(text: str) -> int | None:
    """Return where the first action that need not be the user's begins (`_SOMEBODY`), or None."""
    starts = (one.start() for one in _ACTION.finditer(text) if _SOMEBODY.match(one["stars"] or one["line"]))
    return next(starts, None)


def _narrates(said: str) -> bool:
    """Whether `said` has both a quotation of several words and text outside of it."""
    divided = divide(said)
    return any(" " in speech for speech in divided.speech) and count_letters(divided.narration) > 0
