"""The judgement of a model's answers. Every prompt has a profile; the rules are the same for all. Pure.

A doubtful answer is accepted if it could be a good one. A refused answer costs another call, and after three refused
answers, or two in which the model declines, the text is made without the model. So the rules look for faults that good
answers never have. A fault that a good answer can have is marked `once`: it is refused only once for a work item, and
never in the last answer, because quotations would be worse than such an answer.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, Literal, TypeVar

from app.kit.refusals import Refusal
from app.summarising.answer_text import UnusableAnswer, spoken
from app.summarising.judging.declining import find_declining, find_omission
from app.summarising.judging.dialogue import invents_dialogue, is_script, may_be_dialogue, quotes_something_else
from app.summarising.judging.examples import find_copy
from app.summarising.judging.foreign import Identify, are_alike, find_language_fault
from app.summarising.judging.length import (
    LONG_FORMER_CHARS,
    MUCH_MATERIAL_LETTERS,
    find_shortness,
    find_shrinking,
    find_unfinished,
    is_shorter,
)
from app.summarising.judging.notices import copies_stamp, find_notice
from app.summarising.judging.person import count_persons, is_about, without_reported_speech
from app.summarising.judging.remarks import find_remark
from app.summarising.judging.repetition import find_repetition
from app.summarising.judging.retention import MIN_WORDS, MIN_WORDS_OF_REWRITTEN, share_kept, share_known
from app.summarising.judging.scripts import find_script_fault
from app.summarising.judging.speech import begins_with_action, count_letters, divide, fold
from app.summarising.judging.tense import has_past, shows_actions, shows_own_actions

Value = TypeVar("Value")

_MOST_REMARK_CHARS = 2_000

_LEAST_KEPT_SHARE = 0.2
"""The least share of the former text's words that an answer has to keep."""

_LEAST_SHARE_OF_SHORTER = 0.1
"""The same for an answer that is less than half as long as the former text: it has room for fewer words."""

_LEAST_SHARE_OF_REWRITTEN = 0.08
"""The same for an answer that may shrink.

In the corpus of answers (`tests/summarising/judging`), good ones keep 0.15 and more, forgetful ones at most 0.02.
"""

_LEAST_KNOWN_SHARE = 0.15
"""The least share of an answer's words that must be in its material, if the material is long (measured in ADR 0021)."""

_THINKING = re.compile(
    r"\W{0,3}(?:(?:okay|ok|alright|hmm|so|well|right|first)[,.]? ){0,2}"
    r"(?:let me (?:think|see|start|begin|read|look|break|fold|go)|the user (?:wants|asks|asked|is asking|has asked)"
    r"|i(?:['’]ll| will)? (?:now )?(?:need to|should|have to|start|begin|summari[sz]e|fold|write)\b"
    r"|we (?:need|have) to|my task is|the task is|step 1\b|thinking process)",
    re.I,
)
_LANGUAGE_TAG = re.compile(r"([a-z]{2,3})(?:[-_][A-Za-z0-9]{1,8})*")


@dataclass(frozen=True)
class Material:
    """The texts that an answer is made from, and what is known about them.

    Attributes:
        texts: The messages, entries or recaps, one text each.
        former: The text that the answer replaces; "" if there is none.
        language: The language that was asked for, as a name or a tag; None for that of `texts`.
        name: For a diary, the character who writes it.
        names: The names of those who speak. They are not counted as pronouns, even if they look like one ("You").
        kept: A text of a person that precedes `former` in the prompt; its style is accepted in the answer.
        wished: Whether a person wished for something, such as fewer words, another language or another voice.

    """

    texts: Sequence[str]
    former: str = ""
    language: str | None = None
    name: str = ""
    names: Collection[str] = ()
    kept: str = ""
    wished: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """All texts, including the former one."""
        return (*self.texts, self.former)

    @property
    def asked_language(self) -> str | None:
        """The first part of the language tag that was asked for; "" if it is a name; None if none was asked for."""
        if not self.language:
            return None
        tag = _LANGUAGE_TAG.fullmatch(self.language.strip())
        return tag[1] if tag else ""

    @cached_property
    def folded(self) -> str:
        """All texts as `speech.fold` normalises them, one per line."""
        return "\n".join(map(fold, self.sources))


@dataclass(frozen=True, slots=True)
class Profile(Generic[Value]):
    """How the answers to a prompt are read and judged.

    Attributes:
        read: Reads an answer. Raises UnusableAnswer.
        read_cut_off: Reads the complete parts of an answer that was cut off, and raises UnusableAnswer if there are
            none; None if the answers to the prompt are usable only as a whole.
        text: Returns the text to judge, or None if there is none.
        person: The grammatical person outside quotation marks: `third`, or `first` for a diary. With None, neither the
            person nor dialogue is judged.
        in_past: Whether the text reports in the past tense.
        may_address: Whether the text may address somebody if its material does, and may show moments in the present
            tense if its material does. True for the fold of a diary, whose entries may do both.
        may_quote: Whether the text may consist mostly of quotations.
        quotes_sources: Whether all quotations should be from the material. If so, a text with a long quotation that
            has no word of the material is refused once.
        from_sources: Whether the text reports what its material says. If so, a long text with hardly any of the
            material's words is refused once.
        may_shrink: Whether the text may be less than half as long as the former one, and may keep few of its words. If
            it keeps hardly any, it is refused once.
        ends: Whether the text must end with the end of a sentence.
        min_letters: A shorter text about much material is refused each time. If this is not 0, a text that is much
            shorter than its material is refused once.
        find_form_fault: Returns a fault of an answer that can be read in spite of it, or None if the answer has none.
            The attribute is None if there are no such faults to look for.

    """

    read: Callable[[str, Material], Value]
    text: Callable[[Value], str | None]
    person: Literal["third", "first"] | None = "third"
    in_past: bool = False
    may_address: bool = False
    may_quote: bool = False
    quotes_sources: bool = False
    from_sources: bool = False
    may_shrink: bool = True
    ends: bool = False
    min_letters: int = 0
    read_cut_off: Callable[[str, Material], Value] | None = None
    find_form_fault: Callable[[str], Refusal | None] | None = None


def judge(
    answer: str,
    profile: Profile[Value],
    material: Material,
    *,
    rules: str = "",
    refused: Collection[Refusal] = (),
    is_last: bool = False,
    identify: Identify,
) -> Value:
    """Return the value in `answer`. Raises UnusableAnswer with the fault.

    Args:
        answer: The model's answer.
        profile: The profile of its prompt.
        material: The texts that it was made from.
        rules: The prompt's system text, which contains the examples.
        refused: The faults for which earlier answers were refused.
        is_last: Whether the model is not asked again if this answer is refused.
        identify: Identifies the language of a text.

    """
    try:
        value = profile.read(answer, material)
    except UnusableAnswer as error:
        if error.kind == "form" and (fault := _find_remark_in_answer(answer, profile, material)):
            raise UnusableAnswer(fault.reason, fault.kind) from error
        raise
    text = profile.text(value)
    if text is None or material.former in (value, text):
        return value
    for fault in _find_faults(answer, text, profile, material, rules, identify):
        if not fault.once or not (is_last or fault in refused):
            raise UnusableAnswer(fault.reason, fault.kind)
    return value


def _find_faults(
    answer: str, text: str, profile: Profile[Value], material: Material, rules: str, identify: Identify
) -> Iterator[Refusal]:
    """Yield the faults of `text`, the judged part of `answer`, the gravest first."""
    wished = material.wished
    finders: list[Callable[[], Refusal | None]] = [
        lambda: _find_remark(text, profile, material),
        lambda: _find_stamp(text, profile, material),
        lambda: _find_dialogue(text, profile, material),
        lambda: _find_person(text, profile, material, identify),
        lambda: find_repetition(text, material.folded),
        lambda: find_copy(text, rules, material.sources),
        lambda: _find_language(text, material, identify),
        lambda: None if wished else find_shortness(text, material.texts, profile.min_letters),
        lambda: None if wished else _find_loss(text, profile, material, identify),
        lambda: _find_scene(text, profile, material, identify),
        lambda: _find_turns(answer, text, profile, material),
        lambda: _find_new_quotation(text, material) if profile.quotes_sources else None,
        lambda: _find_invention(text, material, identify) if profile.from_sources else None,
        lambda: None if wished or profile.may_shrink else find_shrinking(text, material.former),
        lambda: find_unfinished(text) if profile.ends else None,
        lambda: profile.find_form_fault(answer) if profile.find_form_fault else None,
    ]
    yield from (fault for find in finders if (fault := find()))


def _find_remark(text: str, profile: Profile[Value], material: Material) -> Refusal | None:
    """Return a refusal if the model declines in `text`, talks about the task or an omission, or if it is an error.

    Quotations are judged only as parts of an error message. Speech after a colon ("Kai told Mira: …") is not judged
    either, unless the text is in the first person or begins with "I".
    """
    narration, first_person = divide(text).narration, profile.person == "first"
    if not (first_person or narration.startswith("I ")):
        narration = without_reported_speech(narration)
    former = fold(material.former)
    return (
        find_declining(narration, first_person=first_person, known=material.folded, former=former)
        or find_notice(text, material.folded)
        or find_remark(narration, first_person=first_person, former=former)
        or find_omission(narration, material.folded)
    )


def _find_stamp(text: str, profile: Profile[Value], material: Material) -> Refusal | None:
    """Return a refusal if `text` has a stamp of a message, such as `[10/22 19:00] Kai:`.

    A good text can have such stamps: a prompt of the deployment can ask for a log, and a diary can be written as one.
    """
    names = {material.name, *material.names}
    is_stamped = profile.person is not None and copies_stamp(divide(text).narration, material.folded, names)
    return _STAMPED if is_stamped else None


_STAMPED = Refusal("form", "the answer copies the time and the speaker of a message", once=True)


def _find_remark_in_answer(answer: str, profile: Profile[Value], material: Material) -> Refusal | None:
    """Return what `_find_remark` finds in an answer that cannot be read, such as a recap without headings."""
    try:
        text = spoken(answer)
    except UnusableAnswer:
        return None
    return _find_remark(text[:_MOST_REMARK_CHARS], profile, material)


def _find_person(text: str, profile: Profile[Value], material: Material, identify: Identify) -> Refusal | None:
    """Return a refusal if `text` is in the wrong grammatical person, or is about the task instead of the story."""
    narration = divide(text).narration
    language = identify(narration) or identify("\n".join(material.texts))
    persons = count_persons(narration, language, material.names)
    if persons is None or profile.person is None:
        return None
    if profile.person == "third":
        if persons.first and _THINKING.match(text) and not material.wished:
            return Refusal("form", "the answer is about the task")
        if not persons.goes_on or _goes_on(f"{material.kept}\n{material.former}", language, material):
            return None
        is_report = not (persons.first and persons.second) or language != "en" or has_past(narration)
        return _WISHED_PERSON if material.wished and is_report else _PERSON
    if persons.addresses and not (profile.may_address and _addresses("\n".join(material.sources), language, material)):
        return _story("it talks to somebody instead of writing a diary")
    if is_about(narration, material.name, language):
        return Refusal("form", "the answer is written about the character instead of in the first person")
    return None


def _find_scene(text: str, profile: Profile[Value], material: Material, identify: Identify) -> Refusal | None:
    """Return a refusal if `text` shows a moment of a scene in the present tense, and the texts it builds on do not."""
    if profile.person != "first" and not profile.in_past:
        return None
    shows = shows_own_actions if profile.person == "first" else shows_actions
    former = material.sources if profile.may_address else (material.kept, material.former)
    narration, *known = (divide(one).narration for one in (text, *former))
    if not shows(narration) or any(map(shows, known)):
        return None
    return _PRESENT if (identify(narration) or identify("\n".join(material.texts))) == "en" else None


def _find_dialogue(text: str, profile: Profile[Value], material: Material) -> Refusal | None:
    """Return a refusal if `text` is written as roleplay or as a script, or invents what somebody says."""
    if profile.person is None:
        return None
    if begins_with_action(text) and not begins_with_action(material.former):
        return _story("it begins with an action between asterisks")
    if is_script(text, first_person=profile.person == "first") and not _may_keep_dialogue(profile, material):
        return _story("it is a dialogue")
    may_translate = material.language is not None or material.wished
    speech = divide(text).speech
    if not profile.may_quote and invents_dialogue(text, speech, material.folded, may_translate=may_translate):
        return _story("much of it is new dialogue")
    return None


def _find_turns(answer: str, text: str, profile: Profile[Value], material: Material) -> Refusal | None:
    """Return a refusal if a diary can be a dialogue: notes about people under their names look like that, too.

    An entry is one paragraph, so its turns are also looked for in the lines of the `answer`.
    """
    if profile.person != "first":
        return None
    is_like = partial(may_be_dialogue, author=material.name, names=material.names)
    return _TURNS if any(map(is_like, (spoken(answer), text))) and not _may_keep_dialogue(profile, material) else None


def _may_keep_dialogue(profile: Profile[Value], material: Material) -> bool:
    """Whether the former text is or may be a dialogue; for a folded diary, also whether one of its entries may be."""
    is_first = profile.person == "first"
    return any(
        is_script(one, first_person=is_first)
        or (is_first and may_be_dialogue(one, author=material.name, names=material.names))
        for one in (material.sources if profile.may_address else (material.former,))
    )


def _find_new_quotation(text: str, material: Material) -> Refusal | None:
    """Return a refusal if `text` quotes something else than the material, unless it may be a translation."""
    may_translate = material.language is not None or material.wished
    is_new = not may_translate and quotes_something_else(divide(text).speech, material.folded)
    return _NEW_QUOTATION if is_new else None


def _goes_on(former: str, language: str | None, material: Material) -> bool:
    """Return whether `former`, which a person or an earlier fold wrote, often says "I" or "you" for a person."""
    persons = count_persons(divide(former).narration, language, material.names)
    return persons is not None and persons.goes_on


def _addresses(texts: str, language: str | None, material: Material) -> bool:
    persons = count_persons(divide(texts).narration, language, material.names)
    return persons is not None and persons.addresses


def _story(why: str, *, once: bool = False) -> Refusal:
    return Refusal("story", f"the answer goes on with the story instead of reporting it: {why}", once)


_PERSON = _story('outside quotation marks it says "I" or "you" for a person')
_WISHED_PERSON = _story('it says "I" or "you" for a person, which only the wish could ask for', once=True)
_NEW_QUOTATION = _story("it quotes words that are not in the material", once=True)
_TURNS = _story("its lines look like those of a dialogue", once=True)
_PRESENT = _story("it shows a scene in the present tense", once=True)


def _find_language(text: str, material: Material, identify: Identify) -> Refusal | None:
    """Return a refusal if `text` is in the wrong script or language; with a wish, only the script is compared."""
    asked = material.asked_language
    if not material.wished:
        return find_language_fault(text, material.sources, asked, identify)
    return _WISHED_SCRIPT if find_script_fault(text, material.sources, asked) else None


_WISHED_SCRIPT = Refusal(
    "language",
    "the answer is written in another script than the messages, which only the wish could ask for",
    once=True,
)


def _find_loss(text: str, profile: Profile[Value], material: Material, identify: Identify) -> Refusal | None:
    """Return a refusal if `text` keeps hardly any words of a long former text in the same language."""
    former = material.former
    if len(former) <= LONG_FORMER_CHARS:
        return None
    if profile.may_shrink:
        least, min_words = _LEAST_SHARE_OF_REWRITTEN, MIN_WORDS_OF_REWRITTEN
    else:
        least, min_words = _LEAST_SHARE_OF_SHORTER if is_shorter(text, former) else _LEAST_KEPT_SHARE, MIN_WORDS
    if share_kept(text, former, "\n".join(material.texts), min_words=min_words) >= least:
        return None
    if not are_alike(identify(text) or "", identify(former)):
        return None  # a translation has other words
    return _FORGOTTEN if profile.may_shrink else _LOST


_LOST = Refusal("shrunk", "the answer keeps hardly anything of the former text")
_FORGOTTEN = Refusal("shrunk", "the answer forgets nearly everything that the former text says", once=True)


def _find_invention(text: str, material: Material, identify: Identify) -> Refusal | None:
    """Return a refusal if `text` has hardly any words of its material, which is long and in the same language."""
    sources = "\n".join((*material.sources, material.kept))
    if material.wished or sum(map(count_letters, material.texts)) < MUCH_MATERIAL_LETTERS:
        return None
    if share_known(text, sources, {*material.names, material.name}) >= _LEAST_KNOWN_SHARE:
        return None
    return _INVENTED if are_alike(identify(text) or "", identify(sources)) else None


_INVENTED = _story("it says hardly anything that the messages say", once=True)
