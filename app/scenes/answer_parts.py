"""Divides a model's recap into its title and the lines of its parts: outcomes, threads and state. Pure.

Cheap models vary the headings (level, case, bold, a number before them, another language), leave some of them out, or
write something before them. Lines before the first heading belong to the outcomes, so that none is lost.
"""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import dropwhile, pairwise

from app.summarising.answer_text import FENCE, first_turn, spoken, without_controls
from app.summarising.prose import is_offer, read_prose

MAX_TITLE_CHARS = 50
PARTS = ("outcomes", "threads", "state")

_OUTCOMES, _THREADS, _STATE = range(len(PARTS))
_OWN_NAMES = {
    **dict.fromkeys(("outcomes", "outcome"), _OUTCOMES),
    **dict.fromkeys(("threads", "thread"), _THREADS),
    "state": _STATE,
}
_OTHER_NAMES = {
    **dict.fromkeys(("key outcomes", "main outcomes", "events", "key events", "main events"), _OUTCOMES),
    **dict.fromkeys(("what happened", "developments", "key developments", "plot developments"), _OUTCOMES),
    **dict.fromkeys(("open threads", "unresolved threads", "plot threads", "ongoing threads"), _THREADS),
    **dict.fromkeys(("active threads", "loose ends", "open questions"), _THREADS),
    **dict.fromkeys(("states", "current state", "final state", "status", "current status", "situation"), _STATE),
}
"""Other names that models give the parts.

Accepted in a heading that is marked by `#` or bold type. A line of its own with such a name and a colon can be a
heading, too, but also the name of a group, so its position decides (`_find_headings`).
"""

BULLET = r"(?:[-*+•‣◦▪●·–—]|\d{1,2}[.)])\s+"
MARKS = re.compile(r"[#\s]*#\s*")

_NOTE = re.compile(r"[(（][a-z][^()（）]{0,40}[)）]$")
_BULLETS = re.compile(rf"(?:{BULLET})+")
_BOLD_LINE = re.compile(r"\*{2,3}([^*]{1,80})\*{2,3}\s*([:：]?)")
_TITLE = re.compile(r"(?:scene )?title\s*[:：]\s*(.*)", re.I)
_FOREIGN_TITLE = re.compile(r"[^\W\d_]{1,12}\s?[:：]\s*(\S.*)")
_MOST_CHARS_OF_LONG_TITLE = 80
_COLONS = (":", "：")
_SENTENCE_ENDS = tuple(".!?…。！？")

_TASK = (
    r"\b(?:recap|summary|summari[sz]ed?|scenes?|answer|version|headings|form|outcomes|zusammenfassung|resumen|resumo"
    r"|résumé|riassunto|пересказ|итог\w{0,2}|сводк\w)\b|要約|まとめ|总结|總結|摘要|요약"
)
_ANNOUNCEMENT = re.compile(
    r"(?:(?:sure(?: thing)?|certainly|of course|okay|ok|alright|understood|absolutely|got it)[.!,:]?\s?)?"
    rf"(?:(?=.{{0,200}}(?:{_TASK}))(?:here(?:['’]s| is| are)|below (?:is|are)|this is|as requested|the following|let me"
    r"|i(?:['’](?:ll|ve)| will| have| need to)|the user (?:wants|asks|asked))\b.{0,200})?",
    re.I,
)
"""A phrase that announces the recap. It also matches "", which no line is."""

_MOST_WORDS_OF_ANNOUNCEMENT = 12
_WORD_EDGES = ".,;:!?…。！？：\"'“”‘’*_()"
_CAPITALISED = {*_OWN_NAMES, "title", "scene", "recap", "running", "summary"}
"""Words that an announcement may write with a capital letter; other capital letters are names."""
_FIRST_PERSON = re.compile(r"I(?:['’]|$)")

_NAME_OF_ALL = re.compile(r"(?:(?:the|scene|running|new|updated|whole|full) ){0,3}(?:recap|summary)(?: so far)?", re.I)

Parts = tuple[list[str], list[str], list[str]]


def read_parts(answer: str, *, titled: bool) -> tuple[str | None, Parts, bool]:
    """Return the title, the lines of the parts, and whether the answer has headings.

    If the answer has no headings of parts, remarks around it are removed (`read_prose`) until a heading is found or no
    remark is left. Without headings, all lines are outcomes. With `titled`, a line without the label "Title" can be the
    title, too. Raises UnusableAnswer.
    """
    title, text = None, spoken(answer)
    while True:
        lines = _plain_lines(text)
        preface, parts = _divide(lines)
        if parts is not None:
            found, before = _split_preface(preface, has_outcomes=bool(parts[_OUTCOMES]), titled=titled)
            if any(parts[_OUTCOMES]):  # text before a heading that has lines below it is a remark
                before = [line for line in before if _has_bullet(line)]
            parts[_OUTCOMES][:0] = before
            return title or found, parts, True
        if labelled := _TITLE.fullmatch(_unmarked(lines[0])) if lines else None:
            title = title or labelled[1]
            lines.pop(0)
        bare = "\n".join(lines)
        text = read_prose(bare)
        if text == bare:
            return title, (lines, [], []), False


def read_written(text: str) -> Parts:
    """Return the lines of the parts of a recap that is stored, perhaps as a person wrote it: no line is left out.

    Lines before the first heading, or all lines without one, are outcomes.
    """
    lines = _plain_lines(text, keep_all=True)
    preface, parts = _divide(lines)
    if parts is None:
        return lines, [], []
    parts[_OUTCOMES][:0] = preface
    return parts


def _plain_lines(text: str, *, keep_all: bool = False) -> list[str]:
    """Return the lines of `text`, without code fences and blank lines.

    JSON becomes lines with headings; `keep_all` keeps all its fields. A bold line becomes a heading; other bold marks
    are removed. Only lines with a bullet keep their indentation.
    """
    unfenced = "\n".join(FENCE.sub("\n", text).splitlines()).strip()
    plain = _out_of_json(unfenced if keep_all else _only_json(unfenced), keep_all=keep_all)
    lines = (_BOLD_LINE.sub(r"# \1\2", line.strip()) if _is_bold(line) else line.rstrip() for line in plain.split("\n"))
    return [bare for line in lines if (bare := _unindented(re.sub(r"\*{2,}", "", line).rstrip()))]


def _unindented(line: str) -> str:
    return line if _has_bullet(line) else line.lstrip()


def _has_bullet(line: str) -> bool:
    return _BULLETS.match(line.lstrip()) is not None


def _is_bold(line: str) -> bool:
    return _BOLD_LINE.fullmatch(line.strip()) is not None


def _unmarked(line: str) -> str:
    marks = MARKS.match(line)
    return line[marks.end() :] if marks else line


def _divide(lines: Sequence[str]) -> tuple[list[str], Parts | None]:
    """Return the lines before the first heading, and the lines of the parts (None if there is no heading).

    A part with a heading has at least one line, the text after the heading's colon, which can be "".
    """
    headings = _find_headings(lines)
    if not any(headings):
        return [], None
    preface: list[str] = []
    parts: Parts = ([], [], [])
    into = preface
    for line, heading in zip(lines, headings, strict=True):
        if heading:
            into = parts[heading[0]]
            into.append(heading[1])
        else:
            into.append(line)
    return preface, parts


def _find_headings(lines: Sequence[str]) -> list[tuple[int, str] | None]:
    """Return for each line the part whose heading it is, and the text after the colon; None for other lines.

    A label without a mark that has another name of a part ("Open threads:") is a heading only if the part has no other
    one, and if it follows the parts before it. It never ends a part whose heading is marked: it names a group there.
    """
    headings = [find_part(line) for line in lines]
    marked = [at for at, line in enumerate(lines) if MARKS.match(line) and not _TITLE.fullmatch(_unmarked(line))]
    if not any(headings) and len(marked) == len(PARTS):
        for part, at in enumerate(marked):  # headings in another language, in the order that the prompt asks for
            headings[at] = (part, "")
    known = {heading[0] for heading in headings if heading}
    current, is_marked = -1, False
    for at, line in enumerate(lines):
        if heading := headings[at]:
            current, is_marked = heading[0], MARKS.match(line) is not None
        elif not is_marked and (label := find_part(line, unmarked=True)):
            part = label[0]
            if current < part and known.isdisjoint(range(current + 1, part + 1)):
                headings[at] = label
                known.add(part)
                current = part
    return headings


def find_part(line: str, *, unmarked: bool = False) -> tuple[int, str] | None:
    """Return the part whose heading `line` is, and the text after the colon; None if `line` is no heading.

    With `unmarked`, a label of its own may have one of the other names of a part, too.
    """
    line = line.lstrip()
    text = _unmarked(line)
    name, *rest = re.split(r"\s*[:：]\s*", text, maxsplit=1)
    bullets = _BULLETS.match(name)
    is_label = rest == [""] and (bullets is None or bullets[0][0].isdigit())
    if not any(rest) and (bullets is None or is_label):
        name = _NOTE.sub("", name)  # "Outcomes (so far)"
    if bullets and not any(rest):  # a heading may follow a number or a bullet, but "- state: Ohio" is no heading
        name = name[bullets.end() :]
    name = " ".join(name.strip("*_ ").casefold().split())
    part = _OWN_NAMES.get(name, _OTHER_NAMES.get(name) if text != line or (unmarked and is_label) else None)
    return None if part is None else (part, rest[0] if rest else "")


# --- the lines before the first heading ---


def _split_preface(preface: Sequence[str], *, has_outcomes: bool, titled: bool) -> tuple[str | None, list[str]]:
    """Return the title in the lines before the first heading, or None, and the other lines: they are outcomes.

    Phrases that announce the recap are left out, and so are headings without lines below them. `has_outcomes` is
    whether the outcomes have a heading, too.
    """
    lines = [*dropwhile(_announces, (line for line in preface if any(char.isalnum() for char in line)))]
    title, first, end = _find_title(lines, has_outcomes=has_outcomes, titled=titled)
    before, after = lines[:first], lines[end:]
    if after or has_outcomes:
        before = [line for line in before if _has_bullet(line)]  # a recap begins with its title
    left = [*before, *dropwhile(_announces, after)] if end else lines
    while left and _is_bare(left[-1], has_outcomes=has_outcomes):
        left.pop()
    return title, left


def _is_bare(line: str, *, has_outcomes: bool) -> bool:
    """Return whether `line`, the last one before the first heading, is a heading or label with nothing below it.

    Without other outcomes, a line that is marked as a heading can be all that happened.
    """
    is_heading = has_outcomes and MARKS.match(line) and not line.endswith(_SENTENCE_ENDS)
    return bool(is_heading) or line.endswith(_COLONS)


def _announces(line: str) -> bool:
    """Return whether `line` announces the recap, such as "Here is the recap:"."""
    if _has_bullet(line):
        return False
    text = _unmarked(line)
    is_label = text.endswith(_COLONS)
    if _NAME_OF_ALL.fullmatch(text.rstrip(":： ")) or (is_label and re.search(_TASK, text, re.I)):
        return True
    return _ANNOUNCEMENT.fullmatch(text) is not None and not _may_be_content(text)


def _may_be_content(text: str) -> bool:
    """Return whether a phrase that seems to announce the recap may be part of it: it is long, or names somebody."""
    words = text.rstrip(":：").split()
    named = (
        word.strip(_WORD_EDGES)
        for before, word in pairwise(words)
        if not before.endswith(_SENTENCE_ENDS) and word.strip(_WORD_EDGES)[:1].isupper()
    )
    has_name = any(word.casefold() not in _CAPITALISED and not _FIRST_PERSON.match(word) for word in named)
    return has_name or len(words) > _MOST_WORDS_OF_ANNOUNCEMENT or not {":", "："}.isdisjoint(text[:-1])


def _find_title(lines: Sequence[str], *, has_outcomes: bool, titled: bool) -> tuple[str | None, int, int]:
    """Return the title in `lines`, and the range of its lines; (None, 0, 0) without a title.

    A line with the label "Title" is preferred. Without one, and if `titled`, the first line can be the title.
    """
    for at, line in enumerate(lines):
        text = _unmarked(line)
        labelled = _TITLE.fullmatch(text)
        if labelled or (text.casefold() == "title" and text != line):
            if labelled and labelled[1]:
                return labelled[1], at, at + 1
            below = lines[at + 1 : at + 2]
            return (below[0], at, at + 2) if below and not _has_bullet(below[0]) else (None, at, at + 1)
    if not (titled and lines):
        return None, 0, 0
    title = _guess_title(lines[0], lines[1:], has_outcomes=has_outcomes)
    return (title, 0, 1) if title else (None, 0, 0)


def _guess_title(line: str, following: Sequence[str], *, has_outcomes: bool) -> str | None:
    """Return the title in `line`, the first one of an answer without the label "Title", or None.

    The title is a heading, has a label in another language, or is short. It is not a sentence, and outcomes follow.
    """
    text = _unmarked(line)
    if _has_bullet(line):
        return None
    is_alone = has_outcomes and not following
    is_statement = text.endswith((*_COLONS, *_SENTENCE_ENDS))
    if text != line:
        heads_all = has_outcomes or (following and not any(map(MARKS.match, following)))
        return text if is_alone or (heads_all and not is_statement) else None
    if is_statement or len(text) > _MOST_CHARS_OF_LONG_TITLE:
        return None
    if not (is_alone or (following and _has_bullet(following[0]))):
        return None
    if labelled := _FOREIGN_TITLE.fullmatch(text):
        return labelled[1]
    return text if len(text) <= MAX_TITLE_CHARS else None


# --- JSON ---

_TITLE_FIELD = re.compile(
    r".{0,20}title|(?:.{1,20} )?(?:name|heading|headline|titel|titre|título|titolo)|заголовок|标题|標題|タイトル|제목"
)
_ASIDE_FIELD = re.compile(r"thoughts?|thinking|reasoning|analysis|plan|characters?|participants?|cast|language")
"""Fields that contain no outcomes."""


def _only_json(text: str) -> str:
    """Return the JSON object in `text` if only announcements precede it and only offers follow, else `text`."""
    start, end = 0 if text.startswith("{") else text.find("\n{") + 1, text.rfind("}") + 1
    before, after = (filter(None, part.split("\n")) for part in (text[:start], text[end:]))
    is_alone = text.startswith("{", start) and all(map(_announces, before)) and all(map(is_offer, after))
    return text[start:end] if is_alone else text


def _out_of_json(text: str, *, keep_all: bool) -> str:
    """Return `text` as lines with headings if it is a JSON object with parts of a recap, else unchanged.

    If no part of it has the outcomes, its fields with other names are the outcomes, except titles and thoughts. With
    `keep_all`, all fields with other names are lines before the first heading.
    """
    if not text.startswith("{"):
        return text
    try:
        found = json.loads(text, strict=False, object_pairs_hook=_join_pairs)
        fields = _join_pairs((_name_of(key), value) for key, value in found.items()) if isinstance(found, dict) else {}
        return "\n".join(_list_fields(fields, keep_all=keep_all)) if fields.keys() & set(PARTS) else text
    except (ValueError, RecursionError):
        return text


def _join_pairs(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return pairs as an object. The values of a name that comes more than once are a list, without repetitions."""
    values: dict[str, list[object]] = {}
    for name, value in pairs:
        found = values.setdefault(name, [])
        if found[-1:] != [value]:
            found.append(value)
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}


def _list_fields(fields: dict[str, object], *, keep_all: bool) -> list[str]:
    names = _OWN_NAMES | _OTHER_NAMES
    if keep_all:
        lines = _sentences({name: value for name, value in fields.items() if name not in names and _sentences(value)})
        fields = {name: value for name, value in fields.items() if name in names}
    else:
        titles = [fields.pop(name) for name in [*fields] if _TITLE_FIELD.fullmatch(name)]
        fields = {name: value for name, value in fields.items() if not _ASIDE_FIELD.fullmatch(name)}
        lines = [f"Title: {' '.join(_sentences(next(filter(None, titles), None)))}"]
    has_outcomes = keep_all or any(names.get(name) == _OUTCOMES for name in fields)
    for part, heading in enumerate(PARTS):
        own = [value for name, value in fields.items() if names.get(name, None if has_outcomes else _OUTCOMES) == part]
        lines += [f"# {heading}", *(f"- {sentence}" for value in own for sentence in _sentences(value))]
    return lines


def _name_of(key: object) -> str:
    return " ".join(str(key).replace("_", " ").casefold().split())


def _sentences(value: object) -> list[str]:
    """Return the texts in a JSON value, one line each; an object becomes lines of `label: value`.

    An object that has only a label and a value becomes one such line.
    Escapes of JSON can produce control characters and tokens of a chat template, which are removed.
    """
    if isinstance(value, dict):
        if value.keys() == {"label", "value"}:
            value = {str(value["label"]): value["value"]}
        return [f"{label}: {' '.join(_sentences(inner))}" for label, inner in value.items()]
    if isinstance(value, list):
        return [sentence for inner in value for sentence in _sentences(inner)]
    written = json.dumps(value) if isinstance(value, bool) else str(value)
    return [" ".join(first_turn(without_controls(written)).split())] if value not in (None, "") else []
