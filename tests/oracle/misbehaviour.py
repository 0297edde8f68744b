"""Answers that real models give instead of good ones, and forms in which they wrap or spoil good ones.

The answers that are always refused are those of the corpus of the judgement (`tests/summarising/judging`), in English.
The corpus has none for the two prompts that ask for data (`DATA`); theirs are here.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.oracle.service import WORD
from tests.scripted_model import Reply, says
from tests.summarising.judging.prompts import JUDGED

CORPUS = Path(__file__).parents[1] / "summarising" / "judging"

KINDS = frozenset({"declined", "story", "form", "repetition", "examples"})
"""The kinds of faults that do not depend on the messages; `spoil` has answers with the other ones."""

_MATERIALS = (None, "en", "recap", "diary")
_EMPTY = ("", "...", "```\n\n```", "{}", "<think>The user wants a text about the lamp. I should")
_STORY = "*I take your hand and pull you up the stairs.* You laugh, and I know that you will follow me anywhere."
DATA: Mapping[str, Mapping[str, Sequence[str]]] = {
    "break": {
        "declined": (
            "I'm sorry, but I can't help with that request.",
            "I can't continue with this roleplay.",
            "I must respectfully decline to continue with this roleplay.",
        ),
        "story": (_STORY, '"Stay with me until the ferry leaves," Kai says, and he closes the door behind them.'),
        "form": (
            "The scene ends when they leave the island.",
            '{"reason": "They leave the island."}',
            '{"break_at": "the door", "reason": "They leave."}',
            '{"break_at": -1, "reason": "They leave."}',
            '{"break_at": [2, 3], "reason": "They leave."}',
        ),
        "invalid": (
            '{"break_at": 9000000, "reason": "They leave."}',
            '{"break_at": 9000000, "reason": "They leave."}\n{"break_at": 9000001, "reason": "They come back."}',
            "Either break_at: 9000000 or break_at: 9000001.",
        ),
    },
    "consolidation": {
        "declined": (
            "I'm sorry, but I can't help with that request.",
            "I can't continue with this roleplay.",
            '{"memory": "I\'m sorry, but I can\'t help with that request.", "importance": 0.5, "from": [1]}',
        ),
        "story": (
            _STORY,
            '{"memory": "*I take your hand and pull you up the stairs.* You laugh.", "from": [1]}',
            '{"memory": "I take your hand, and you know that I will follow you.", "importance": 0.9, "from": [1]}',
        ),
        "form": (
            "The user and the character grew closer, and there was much tension between them.",
            '{"memory": "There was much tension between the two of them.", "category": "context"}',
            '{"memory": "There was much tension between the two of them.", "from": [9000000]}',
            '{"fact": "home", "value": "an island far out in the sea", "from": []}',
        ),
        "examples": (
            '{"memory": "Petra\'s brother Halvard has run the ferry to Sandoy since 2011.", "from": [1]}',
            '{"memory": "Suli promised Petra to repay the 400 crowns by 9 August.", "importance": 0.8, "from": [1]}',
        ),
    },
}
"""By prompt and kind: answers that are refused whatever the messages are."""

_SHINGLE = 4
_HIGHLIGHT = re.compile(r"【Highlight \d】: \((\w+)\) (.*)")
_GERMAN = {"They spoke of": "Sie sprachen von", "I said": "Ich sagte", "I remember": "Ich erinnere mich an"}


@cache
def misbehaviours(prompt: str) -> Sequence[Sequence[str]]:
    """Return the answers that are always refused as answers to a prompt, those of one kind of fault together."""
    if prompt in DATA:
        # An empty object says that there is nothing to learn.
        return [[text for text in _EMPTY if (prompt, text) != ("consolidation", "{}")], *DATA[prompt].values()]
    by_kind: dict[str, list[str]] = {"empty": list(_EMPTY)}
    refused_once = {case["answer"] for case in _load("good") if case.get("refused")}
    for case in (*_load("refused"), *_load("misbehaving")):
        is_for = prompt in case.get("prompts", [case.get("prompt")])
        if case["answer"] in refused_once or case.get("once") or "names" in case:
            continue  # answers with `names` are refused because of the speakers, who can be others here
        if case["kind"] == "form" and case.get("name", "\0") in case["answer"]:
            continue  # an entry about its author, who can have another name here
        if is_for and case["kind"] in KINDS and case.get("about") in _MATERIALS:
            by_kind.setdefault(case["kind"], []).append(case["answer"])
    return list(by_kind.values())


def repeats_misbehaviour(text: str) -> bool:
    """Whether a text has four words in a row that an answer of `misbehaviours` has."""
    return not _shingles(text).isdisjoint(_all_shingles())


# --- good answers in another form ---


def _as_json(prompt: str, answer: str) -> str:
    if answer == "NONE":
        return answer
    match prompt:
        case "memo":
            found = [{"category": category, "text": text} for category, text in _HIGHLIGHT.findall(answer)]
            return json.dumps({"highlights": found})
        case "scene_recap" | "recap":
            outcomes = [line[2:] for line in answer.splitlines() if line.startswith("- ")]
            return json.dumps({"title": "A lamp", "outcomes": outcomes, "threads": [], "state": {}})
    return json.dumps({prompt: answer})


WRAPPINGS: Sequence[Callable[[str, str], str]] = (
    _as_json,
    lambda _prompt, answer: f"<think>They spoke of a lamp. I should name it.</think>\n\n{answer}",
    lambda _prompt, answer: f"The user wants a text. Draft: they spoke.\n</think>\n{answer}",
    lambda _prompt, answer: f"```\n{answer}\n```",
    lambda _prompt, answer: f"```markdown\n{answer}\n```",
    lambda _prompt, answer: f"Sure! Here is the text:\n\n{answer}",
    lambda _prompt, answer: f"{answer}\n\nLet me know if you would like any changes!",
    lambda _prompt, answer: f"{answer}<|im_end|>",
)
"""(prompt, good answer) → the same answer as data, after thinking aloud, in a fence, or with remarks around it."""


# --- good answers that lack something ---


def _halve(answer: str) -> str:
    """Return an answer without the second half of its unique words."""
    words = WORD.findall(answer)
    dropped = set(words[(len(words) + 1) // 2 :])
    return re.sub(r"(?:, )?(\b[wp]\d+[wp]\b)", lambda found: "" if found[1] in dropped else found[0], answer)


def _translate(answer: str) -> str:
    for english, german in _GERMAN.items():
        answer = answer.replace(english, german)
    return answer


SPOILINGS: Sequence[Callable[[str], str | Reply]] = (
    _halve,
    _translate,
    lambda answer: says(answer[: len(answer) * 2 // 3], finish_reason="length"),
    lambda answer: "\n".join([answer] * 4),
)
"""A good answer → half of it, a translation, its beginning, or the same four times; some of these are accepted."""


# --- the corpus ---


@cache
def _load(name: str) -> Sequence[Mapping[str, Any]]:
    loaded = tomllib.loads((CORPUS / f"{name}.toml").read_text(encoding="utf-8"))
    answers: Sequence[Mapping[str, Any]] = loaded["answers"]
    return answers


@cache
def _all_shingles() -> frozenset[str]:
    texts = [text for prompt in (*JUDGED, *DATA) for kind in misbehaviours(prompt) for text in kind]
    return frozenset().union(*map(_shingles, texts))


def _shingles(text: str) -> frozenset[str]:
    words = re.findall(r"\w+", text.casefold())
    return frozenset(" ".join(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1))
