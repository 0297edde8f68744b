"""Parses a model's answers: the recap of a scene and the running recap, part by part. Pure.

A recap has three parts under headings: outcomes (what happened), threads (what is still open) and state (`label: value`
lines). A group in a state is a label without a value (`Mira:`) with deeper lines below it; parsing puts this label
before the labels of the deeper lines: `Mira, mood: calm`. Headings (`answer_parts.py`) and bullets are normalised, so
that parsing a parsed recap again changes nothing.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.kit.refusals import Refusal
from app.scenes.answer_parts import BULLET, MARKS, MAX_TITLE_CHARS, PARTS, Parts, find_part, read_parts, read_written
from app.scenes.state_lines import StateLine, depth_of, read_state
from app.summarising.answer_text import UnusableAnswer, is_remnant, leaves_former, says_only_nothing
from app.summarising.judging.judge import Profile
from app.summarising.offers import without_offers
from app.summarising.prose import is_offer

_MOST_CHARS_OF_NOTHING = 50
_ASIDE = re.compile(r"\s*[(（][^()（）]*[)）][.。]?$")
_LEAD = re.compile(rf"(?:{BULLET}|#\s*)+")
_PLACEHOLDERS = re.compile(r"(?:<[^<>]*>[\s:：]*)+")
_QUOTES = "\"'“”„«»「」『』` "


@dataclass(frozen=True, slots=True)
class SceneText:
    """The recap of a scene, in parts. The lines of outcomes, threads and state usually have bullets.

    Attributes:
        title: One line of at most 50 characters; None if the model gave none.
        outcomes: What happened, also what is written before the first heading. Contains the whole answer if it has no
            headings.
        threads: What is still open; may be empty.
        state: Lines of `label: value`, each label once; may be empty.

    """

    title: str | None
    outcomes: str
    threads: str
    state: str


def parse_scene_recap(answer: str) -> SceneText:
    """Return the recap of a scene in a model's `answer`; without headings, the whole answer counts as outcomes.

    Raises UnusableAnswer.
    """
    return _parse(answer)[0]


def _parse(answer: str, *, titled: bool = True) -> tuple[SceneText, bool]:
    """Return the recap of a scene, and whether it has headings. Raises UnusableAnswer.

    The running recap is not `titled`: its only title is one with the label "Title", which is dropped.
    """
    title, parts, has_headings = read_parts(answer, titled=titled)
    parsed = _tidy_parts(title, parts)
    if not (parsed.outcomes or parsed.threads or parsed.state):
        raise UnusableAnswer("the answer contains no recap of the scene")
    return parsed, has_headings


def _tidy_parts(title: str | None, parts: Parts) -> SceneText:
    outcomes, threads = (list(filter(None, map(_tidy, part))) for part in parts[:2])
    state = read_state(list(_tidy_state(parts[2])))
    return SceneText(_clean_title(title), *map("\n".join, (outcomes, threads, state)))


def parse_recap(answer: str, *, former: str = "") -> str:
    """Return the running recap in a model's `answer`, under its headings.

    Raises UnusableAnswer, also for an answer without headings, because the next fold could not distinguish its parts,
    and for one without outcomes if `former` has some. If the answer only says that `former`, or a part of `former`, has
    not changed, the former text is used.
    """
    parsed, has_headings = _parse(answer, titled=False)
    if former and not parsed.threads and not parsed.state and leaves_former(parsed.outcomes, former):
        return former
    if not has_headings:
        raise UnusableAnswer(_NO_HEADINGS.reason)
    left = [part for part in PARTS if leaves_former(getattr(parsed, part), former)]
    if former and (left or not parsed.outcomes):
        former_parts = _parse_former(former)
        parsed = replace(parsed, **{part: getattr(former_parts, part) for part in left})
        if former_parts.outcomes and not parsed.outcomes:
            raise UnusableAnswer("the answer loses the outcomes of the former recap", "shrunk")
    text = render_recap(parsed)
    if is_remnant(text, former):
        raise UnusableAnswer("the answer drops nearly all of the former recap")
    return text


def _parse_former(former: str) -> SceneText:
    """Return the parts of a former recap. A person may have written it, so no line counts as a title or a remark."""
    parsed = _tidy_parts(None, read_written(former))
    return parsed if any((parsed.outcomes, parsed.threads, parsed.state)) else replace(parsed, outcomes=former)


_NO_HEADINGS = Refusal("form", "the answer lacks the headings Outcomes, Threads and State", once=True)
_NO_OUTCOMES = Refusal("form", "the answer has nothing under the heading Outcomes", once=True)


def _find_form_fault(answer: str) -> Refusal | None:
    """Return a refusal if the recap of a scene has no headings or no outcomes.

    A second answer with the same fault is not refused for it; without headings, it then counts as outcomes.
    """
    parsed, has_headings = _parse(answer)
    return _NO_HEADINGS if not has_headings else None if parsed.outcomes else _NO_OUTCOMES


def _find_emptiness(answer: str) -> Refusal | None:
    """Return a refusal if the running recap has no outcomes; "no change" counts as outcomes."""
    return None if _parse(answer, titled=False)[0].outcomes else _NO_OUTCOMES


def _without_headings(recap: str) -> str:
    return "\n".join(line for line in recap.split("\n") if not line.startswith("# "))


SCENE_PROFILE = Profile(
    read=lambda answer, _material: parse_scene_recap(answer),
    text=lambda scene: "\n".join(filter(None, (scene.title, scene.outcomes, scene.threads, scene.state))),
    from_sources=True,
    min_letters=10,
    find_form_fault=_find_form_fault,
)
RECAP_PROFILE = Profile(
    read=lambda answer, material: parse_recap(answer, former=material.former),
    text=_without_headings,
    from_sources=True,
    min_letters=10,
    find_form_fault=_find_emptiness,
)


def render_recap(text: SceneText) -> str:
    """Return the parts of `text` under their headings, without empty parts and without the title."""
    parts = zip(PARTS, (text.outcomes, text.threads, text.state), strict=True)
    return "\n\n".join(f"# {name.capitalize()}\n{part}" for name, part in parts if part)


# --- the scene of the state ---

_STATE = re.compile(r"^# State\n", re.MULTILINE)
_STATE_HEAD = re.compile(r"^(?:- )?scene: (.+)$", re.MULTILINE)


def has_state(recap: str) -> bool:
    """Return whether a recap with headings has a state."""
    return _STATE.search(recap) is not None


def find_state_scene(recap: str) -> str | None:
    """Return the scene in the line `scene: …`, if the state of a running recap begins with such a line, else None."""
    state = _STATE.search(recap)
    head = _STATE_HEAD.match(recap, state.end()) if state else None
    return head[1] if head else None


def head_state(recap: str, scene: str | None) -> str:
    """Return a running recap with the line `- scene: …` first in its state; unchanged without a state or a scene."""
    state = _STATE.search(recap)
    if state is None or scene is None:
        return recap
    lines = [line for line in recap[state.end() :].split("\n") if not _STATE_HEAD.fullmatch(line)]
    return recap[: state.end()] + "\n".join([f"- scene: {scene}", *lines])


# --- the lines ---


def _tidy(line: str) -> str | None:
    """Return a line with a uniform bullet, or None if it has no content.

    Lines without content are placeholders, a bare "nothing", headings, offers of further help without a bullet, and
    lines without a letter or digit.
    """
    line = line.strip()
    lead = _LEAD.match(line)
    text = without_offers(line[lead.end() :] if lead else line)
    has_content = any(char.isalnum() for char in text) and not _PLACEHOLDERS.fullmatch(text)
    is_nothing = len(text) <= _MOST_CHARS_OF_NOTHING and _is_nothing(text)
    content = f"- {text}" if lead and lead[0].strip("# ") else text
    return content if has_content and not is_nothing and not is_offer(line) and find_part(content) is None else None


def _is_nothing(text: str) -> bool:
    """Return whether `text` says only "nothing"; "Nothing was found, so she left" says more."""
    return says_only_nothing(_ASIDE.sub("", text))


def _tidy_state(lines: Iterable[str]) -> Iterator[StateLine]:
    """Yield the tidied lines with their depths; a marked heading becomes the name of the group below it."""
    for line in lines:
        content = _tidy(line)
        if content is None:
            continue
        name = content.rstrip(":： ")
        if MARKS.match(line) and not {":", "："} & set(name):
            yield -1, f"{name}:"
        else:
            yield depth_of(content, len(line) - len(line.lstrip())), content


def _clean_title(title: str | None) -> str | None:
    folded = " ".join((title or "").split()).strip(_QUOTES)
    if not any(char.isalnum() for char in folded) or _PLACEHOLDERS.fullmatch(folded) or _is_nothing(folded):
        return None
    if len(folded) <= MAX_TITLE_CHARS:
        return folded
    head = folded[: MAX_TITLE_CHARS + 1]
    return (head.rpartition(" ")[0] or head[:MAX_TITLE_CHARS]).rstrip(" ,;:–—-")
