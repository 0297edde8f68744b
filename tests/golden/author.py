"""Plays the model of the golden story: knows the story, and writes of each request what a good model would.

Its answers are functions of the request alone, so they are the same in whatever order requests come.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.commands.prompts import PROMPTS
from app.consolidation.prompts import CONSOLIDATION
from app.diary.prompts import DIARY
from app.memos.prompts import MEMO
from app.scenes.prompts import RECAP, SCENE_BREAK, SCENE_RECAP
from app.summary.prompts import SUMMARY
from tests.golden.reading import read_lines, read_text
from tests.golden.script import Json, Story
from tests.layers.samples import SAMPLES
from tests.scripted_model import Request

FRESH_EVENTS = 10
"""The number of newest events that a summary describes in full."""

FRESH_SCENES = 2
"""The number of newest scenes that a running recap describes in full."""

MOST_HIGHLIGHTS = 3

_PHRASINGS = ("felt", "kept")
"""What a summary says of an event: while it is fresh, and later."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The messages of a request: their numbers, and which say something else than they first did."""

    numbers: Sequence[int]
    edited: frozenset[int]


class Author:
    """The model. Layers of which the story has no answers bring their own (`LayerSample.author`).

    Attributes:
        asked: How many requests there were, by the name of their prompt.
        answers: The answer to the user text of a request, by the name of its prompt.

    """

    def __init__(self, story: Story) -> None:
        self.asked: Counter[str] = Counter()
        self._wordings = {text: (number, first) for text, number, first in story.list_wordings()}
        self._events = story.answers["events"]
        self._scenes = story.answers["scenes"]
        self._entries = story.answers["diary"]
        self.answers: Mapping[str, Callable[[str], str]] = {
            MEMO.name: self._write_memo,
            SUMMARY.name: self._write_summary,
            DIARY.name: self._fold_diary,
            SCENE_BREAK.name: self._find_break,
            SCENE_RECAP.name: self._write_scene,
            RECAP.name: self._write_recap,
            CONSOLIDATION.name: self._learn,
        } | {name: answer for sample in SAMPLES.values() for name, answer in sample.author(story).items()}
        self._names = {prompt.system: prompt.name for prompt in PROMPTS}

    def __call__(self, request: Request) -> str:
        """The answer. Raises LookupError for what the story does not know."""
        system, user = (str(message["content"]) for message in request["messages"])
        name = self._names[system]
        if name not in self.answers:
            raise LookupError(f"`author` of the sample of the layer whose prompt is {name} has to answer it")
        self.asked[name] += 1
        return self.answers[name](user)

    def _write_memo(self, request: str) -> str:
        read = self._read_messages(request)
        told = [event for event in self._events if event["at"] in read.numbers and "memo" in event]
        lines = [
            f"【Highlight {n}】: {_category(event)}{_word(event, 'memo', edited=event['at'] in read.edited)}"
            for n, event in enumerate(told[:MOST_HIGHLIGHTS], start=1)
        ]
        return "\n".join(lines) or "NONE"

    def _write_summary(self, request: str) -> str:
        """What happened long ago in a first paragraph, condensed; what is fresh in a second, with how it felt."""
        former, read = read_text(request, "former"), self._read_messages(request)
        told: list[str] = []
        condensed: list[str] = []
        for event in self._events:
            edited = event["at"] in read.edited or any(event.get(f"{key}_edited", "\0") in former for key in _PHRASINGS)
            known = any(_word(event, key, edited=edited) in former for key in _PHRASINGS if key in event)
            if "felt" in event and (known or event["at"] in read.numbers):
                told.append(_word(event, "felt", edited=edited))
                condensed.append(_word(event, "kept", edited=edited) if "kept" in event else "")
        old = max(0, len(told) - FRESH_EVENTS)
        paragraphs = (" ".join(filter(None, part)) for part in (condensed[:old], told[old:]))
        return "\n\n".join(filter(None, paragraphs)) or "NONE"

    def _fold_diary(self, request: str) -> str:
        former = read_text(request, "former")
        written = {entry["entry"] for entry in read_lines(request, "entries")}
        return " ".join(
            entry["kept"]
            for entry in self._entries
            if "kept" in entry and (entry["kept"] in former or entry["entry"] in written)
        )

    def _find_break(self, request: str) -> str:
        found = re.search(r"^Possible answers: (.+) or null\.$", request, re.M)
        candidates = [int(number) for number in found[1].split(", ")] if found else []
        for scene in self._scenes:
            if scene["ends"] in candidates:
                return json.dumps({"break_at": scene["ends"], "reason": scene["because"]})
        return json.dumps({"break_at": None, "reason": "same place, same evening"})

    def _write_scene(self, request: str) -> str:
        read = self._read_messages(request)
        scene = next(scene for scene in self._scenes if scene["ends"] >= read.numbers[-1])
        outcomes = [
            _word(event, "memo", edited=event["at"] in read.edited)
            for event in self._events
            if event["at"] in read.numbers and "memo" in event
        ]
        headed = _headed(outcomes, scene.get("opened", {}).values(), scene["state"])
        return f"Title: {scene['title']}\n{headed}"

    def _write_recap(self, request: str) -> str:
        """The newest scenes in full, older ones in a line each; threads that are open, the last value of each state."""
        former = read_text(request, "former")
        new = {scene["title"]: scene["recap"] for scene in read_lines(request, "scenes")}
        told: list[tuple[Json, list[str]]] = []
        for scene in self._scenes:
            if scene["title"] in new:
                told.append((scene, _outcomes_of(new[scene["title"]])))
            elif kept := self._find_in_recap(scene, former):
                told.append((scene, kept))
        threads: dict[str, str] = {}
        state: dict[str, str] = {}
        for scene, _ in told:
            threads |= scene.get("opened", {})
            threads = {key: text for key, text in threads.items() if key not in scene.get("closed", ())}
            state |= scene["state"]
        old = max(0, len(told) - FRESH_SCENES)
        condensed = [scene["kept"] for scene, _ in told[:old]]
        return _headed([*condensed, *(line for _, lines in told[old:] for line in lines)], threads.values(), state)

    def _learn(self, request: str) -> str:
        """A memory of each event in the messages."""
        found = [self._wordings[line["message"]] for line in read_lines(request, "messages")]
        learnt = [
            {"memory": _word(event, "memo", edited=not first), "category": "context", "importance": 0.6, "from": [n]}
            for n, (number, first) in enumerate(found, start=1)
            for event in self._events
            if event["at"] == number and "memo" in event
        ]
        return "\n".join(map(json.dumps, learnt)) or "NONE"

    def _find_in_recap(self, scene: Json, former: str) -> list[str]:
        """What a former recap says of a scene: its line, or its outcomes."""
        if scene["kept"] in former:
            return [scene["kept"]]
        begins = max((one["ends"] for one in self._scenes if one["ends"] < scene["ends"]), default=0) + 1
        events = [event for event in self._events if begins <= event["at"] <= scene["ends"]]
        wordings = [event[key] for event in events for key in ("memo", "memo_edited") if key in event]
        return [text for text in wordings if text in former]

    def _read_messages(self, request: str) -> _Read:
        found = [self._wordings[line["message"]] for line in read_lines(request, "messages")]
        return _Read([number for number, _ in found], frozenset(number for number, first in found if not first))


def _word(event: Json, key: str, *, edited: bool) -> str:
    """Return the text of an event; it differs if its message has been edited."""
    return str(event.get(f"{key}_edited", event[key]) if edited else event[key])


def _category(event: Json) -> str:
    return f"({event['category']}) " if "category" in event else ""


def _headed(outcomes: Iterable[str], threads: Iterable[str], state: Mapping[str, str]) -> str:
    parts: dict[str, Iterable[str]] = {
        "Outcomes": outcomes,
        "Threads": threads,
        "State": [f"{label}: {value}" for label, value in state.items()],
    }
    return "\n".join(line for name, lines in parts.items() for line in (f"# {name}", *(f"- {text}" for text in lines)))


def _outcomes_of(recap: str) -> list[str]:
    outcomes = recap.partition("# Outcomes")[2].partition("# Threads")[0]
    return [line.removeprefix("- ") for line in outcomes.splitlines() if line]
