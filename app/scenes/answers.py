"""Parses a model's answers: the recap of a scene and the running recap, part by part. Pure.

A recap has three parts under headings: outcomes (what happened), threads (what is still open) and state (`label: value`
lines). A group in a state is a label without a value (`Mira:`) with deeper lines below it; parsing puts this label
before the labels of the deeper lines: `Mira, mood: calm`. Cheap models vary the headings (level, case, bold, a number
before them, another language) and the bullets. Both are normalised, so that parsing a parsed recap again changes
nothing.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from app.kit.refusals import Refusal
from app.scenes.state_lines import StateLine, depth_of, read_state
from app.summarising.answer_text import (
    FENCE,
    UnusableAnswer,
    first_turn,
    is_remnant,
    leaves_former,
    says_only_nothing,
    spoken,
    without_controls,
)
from app.summarising.judging.judge import Profile
from app.summarising.offers import without_offers
from app.summarising.prose import is_offer, read_prose

MAX_TITLE_CHARS = 50

_MOST_CHARS_OF_NOTHING = 50
_PARTS = ("outcomes", "threads", "state")
_OWN_NAMES = {"outcomes": 0, "outcome": 0, "threads": 1, "thread": 1, "state": 2}
_OTHER_NAMES = {
    **dict.fromkeys(("key outcomes", "events", "key events", "what happened", "developments"), 0),
    **dict.fromkeys(("open threads", "unresolved threads", "plot threads", "loose ends", "open questions"), 1),
    **dict.fromkeys(("states", "current state", "final state", "status", "current status", "situation"), 2),
}
"""Other names that models give the parts; accepted only in a heading that is marked by `#` or bold type."""

_BOLD_LINE = re.compile(r"\*{2,3}([^*]{1,80})\*{2,3}\s*([:：]?)")
_MARKS = re.compile(r"[#\s]*#\s*")
_BULLET = r"(?:[-*+•‣◦▪●·–—]|\d{1,2}[.)])\s+"
_BULLETS = re.compile(rf"(?:{_BULLET})+")
_LEAD = re.compile(rf"(?:{_BULLET}|#\s*)+")
_TITLE = re.compile(r"(?:scene )?title\s*[:：]\s*(.*)", re.I)
_FOREIGN_TITLE = re.compile(r"[^\W\d_]{1,12}\s?[:：]\s*(\S.*)")
_PLACEHOLDERS = re.compile(r"(?:<[^<>]*>[\s:：]*)+")
_ASIDE = re.compile(r"\s*[(（][^()（）]*[)）][.。]?$")
_QUOTES = "\"'“”„«»「」『』` "


@dataclass(frozen=True, slots=True)
class SceneText:
    """The recap of a scene, in parts. The lines of outcomes, threads and state usually have bullets.

    Attributes:
        title: One line of at most 50 characters; None if the model gave none.
        outcomes: What happened. Contains the whole answer if the answer has no headings.
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


def _parse(answer: str) -> tuple[SceneText, bool]:
    """Return the recap of a scene, and whether it has headings. Raises UnusableAnswer."""
    title, parts, has_headings = _read_parts(answer)
    outcomes, threads = (list(filter(None, map(_tidy, part))) for part in parts[:2])
    state = read_state(list(_tidy_state(parts[2])))
    if not (outcomes or threads or state):
        raise UnusableAnswer("the answer contains no recap of the scene")
    return SceneText(_clean_title(title), *map("\n".join, (outcomes, threads, state))), has_headings


def parse_recap(answer: str, *, former: str = "") -> str:
    """Return the running recap in a model's `answer`, under its headings.

    Raises UnusableAnswer, also for an answer without headings: the next fold could not distinguish its parts. If the
    answer only says that `former`, or a part of `former`, has not changed, the former text is used.
    """
    parsed, has_headings = _parse(answer)
    if former and not parsed.threads and not parsed.state and leaves_former(parsed.outcomes, former):
        return former
    if not has_headings:
        raise UnusableAnswer(_NO_HEADINGS.reason)
    left = [part for part in _PARTS if leaves_former(getattr(parsed, part), former)]
    if former and left:
        former_parts = parse_scene_recap(former)
        parsed = replace(parsed, **{part: getattr(former_parts, part) for part in left})
    text = render_recap(parsed)
    if is_remnant(text, former):
        raise UnusableAnswer("the answer drops nearly all of the former recap")
    return text


_NO_HEADINGS = Refusal("form", "the answer lacks the headings Outcomes, Threads and State", once=True)


def _find_form_fault(answer: str) -> Refusal | None:
    """Return a refusal if the recap of a scene has no headings.

    A second answer without headings is not refused for this; the whole answer then counts as outcomes.
    """
    return None if _parse(answer)[1] else _NO_HEADINGS


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
)


def render_recap(text: SceneText) -> str:
    """Return the parts of `text` under their headings, without empty parts and without the title."""
    parts = zip(_PARTS, (text.outcomes, text.threads, text.state), strict=True)
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


# --- the parts ---

_Parts = tuple[list[str], list[str], list[str]]


def _read_parts(answer: str) -> tuple[str | None, _Parts, bool]:
    """Return the title, the lines of the parts, and whether the answer has headings.

    If the answer has no headings of parts, remarks around it are removed (`read_prose`) until a heading is found or no
    remark is left. Without headings, all lines are outcomes.
    """
    title, text = None, spoken(answer)
    while True:
        lines = _plain_lines(text)
        preface, parts = _divide(lines)
        if parts is not None:
            return title or _find_title(preface), parts, True
        if found := _TITLE.fullmatch(_unmarked(lines[0])) if lines else None:
            title = title or found[1]
            lines.pop(0)
        bare = "\n".join(lines)
        text = read_prose(bare)
        if text == bare:
            return title, (lines, [], []), False


def _plain_lines(text: str) -> list[str]:
    """Return the lines of `text`, without code fences and blank lines.

    JSON becomes lines with headings. A bold line becomes a heading; other bold marks are removed. Only lines with a
    bullet keep their indentation.
    """
    plain = _out_of_json("\n".join(FENCE.sub("\n", text).splitlines()).strip())
    lines = (_BOLD_LINE.sub(r"# \1\2", line.strip()) if _is_bold(line) else line.rstrip() for line in plain.split("\n"))
    return [bare for line in lines if (bare := _unindented(re.sub(r"\*{2,}", "", line).rstrip()))]


def _unindented(line: str) -> str:
    bare = line.lstrip()
    return line if _BULLETS.match(bare) else bare


def _is_bold(line: str) -> bool:
    return _BOLD_LINE.fullmatch(line.strip()) is not None


def _unmarked(line: str) -> str:
    marks = _MARKS.match(line)
    return line[marks.end() :] if marks else line


def _divide(lines: Sequence[str]) -> tuple[list[str], _Parts | None]:
    """Return the lines before the first heading, and the lines of the parts (None if there is no heading)."""
    headings = [_find_part(line) for line in lines]
    if not any(headings):
        marked = [at for at, line in enumerate(lines) if _MARKS.match(line) and not _TITLE.fullmatch(_unmarked(line))]
        if len(marked) != len(_PARTS):
            return [], None
        for part, at in enumerate(marked):  # headings in another language, in the order that the prompt asks for
            headings[at] = (part, "")
    preface: list[str] = []
    parts: _Parts = ([], [], [])
    into = preface
    for line, heading in zip(lines, headings, strict=True):
        if heading:
            into = parts[heading[0]]
            into.append(heading[1])
        else:
            into.append(line)
    return preface, parts


def _find_part(line: str) -> tuple[int, str] | None:
    """Return the part whose heading `line` is, and the text after the colon; None if `line` is no heading."""
    line = line.lstrip()
    text = _unmarked(line)
    name, *rest = re.split(r"\s*[:：]\s*", text, maxsplit=1)
    is_marked = text != line
    if not any(rest):  # a heading may follow a number or a bullet, but "- state: Ohio" is no heading
        name = _BULLETS.sub("", name, count=1) if _BULLETS.match(name) else name
    name = " ".join(name.strip("*_ ").casefold().split())
    part = _OWN_NAMES.get(name, _OTHER_NAMES.get(name) if is_marked else None)
    return None if part is None else (part, rest[0] if rest else "")


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
    return content if has_content and not is_nothing and not is_offer(line) and _find_part(content) is None else None


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
        if _MARKS.match(line) and not {":", "："} & set(name):
            yield -1, f"{name}:"
        else:
            yield depth_of(content, len(line) - len(line.lstrip())), content


# --- the title ---


def _find_title(preface: Sequence[str]) -> str | None:
    """Return the title in the lines before the first part, or None.

    A line with the label "Title" is preferred. Without one, a single line is the title if it is a heading or labelled.
    """
    for at, line in enumerate(preface):
        text = _unmarked(line)
        if found := _TITLE.fullmatch(text):
            return found[1] or (preface[at + 1] if at + 1 < len(preface) else None)
        if text.casefold() == "title" and text != line and at + 1 < len(preface):
            return preface[at + 1]
    if len(preface) == 1:
        text = _unmarked(preface[0])
        if text != preface[0]:
            return text
        if found := _FOREIGN_TITLE.fullmatch(text):
            return found[1]
    return None


def _clean_title(title: str | None) -> str | None:
    folded = " ".join((title or "").split()).strip(_QUOTES)
    if not any(char.isalnum() for char in folded) or _PLACEHOLDERS.fullmatch(folded) or _is_nothing(folded):
        return None
    if len(folded) <= MAX_TITLE_CHARS:
        return folded
    head = folded[: MAX_TITLE_CHARS + 1]
    return (head.rpartition(" ")[0] or head[:MAX_TITLE_CHARS]).rstrip(" ,;:–—-")


# --- JSON ---


def _out_of_json(text: str) -> str:
    """Return `text` as lines with headings if it is a JSON object with parts of a recap, else unchanged."""
    if not text.startswith("{"):
        return text
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    fields = {str(key).casefold(): value for key, value in found.items()} if isinstance(found, dict) else {}
    if not fields.keys() & set(_PARTS):
        return text
    lines = [f"Title: {' '.join(_sentences(fields.get('title')))}"]
    for part in _PARTS:
        lines += [f"# {part}", *(f"- {sentence}" for sentence in _sentences(fields.get(part)))]
    return "\n".join(lines)


def _sentences(value: object) -> list[str]:
    """Return the texts in a JSON value, one line each; an object becomes lines of `label: value`.

    Escapes of JSON can produce control characters and tokens of a chat template, which are removed.
    """
    if isinstance(value, dict):
        return [f"{label}: {' '.join(_sentences(inner))}" for label, inner in value.items()]
    if isinstance(value, list):
        return [sentence for inner in value for sentence in _sentences(inner)]
    return [" ".join(first_turn(without_controls(str(value))).split())] if value not in (None, "") else []
