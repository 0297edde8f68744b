"""Reads the golden story: `story.txt`, what is said and done, and `model.toml`, what a model makes of it. Pure but
for reading the two files.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FOLDER = Path(__file__).parent
BETWEEN_MESSAGES = timedelta(minutes=2)

CAST: Json = {
    "characters": [
        {
            "name": "Ilka",
            "persona": "Ilka Brandis, 41, keeps a bookbinder's workshop in Lüneburg that was her grandmother's. "
            "Dry, exact, proud of her hands. She says what she feels about people by talking about books.",
        }
    ],
    "user_persona": "Jonas Reuter, 36, cellist, warm and hasty. His father Anselm died this spring.",
    "system_prompt": "You are Ilka in a quiet story about two people. Stay in character, and leave room for Jonas.",
    "time_zone": "Europe/Berlin",
    "language": "en",
}

_SCENE = re.compile(r"== \d+ · .+")
_TIME = re.compile(r"@ (\d{4}-\d\d-\d\d \d\d:\d\d [+-]\d\d:\d\d)")
_MESSAGE = re.compile(r" *(\d+) (.+)")
_DEED = re.compile(r"\* (\w+)((?: \d+)*)(?:: (.+))?")

_THOUGHT = re.compile(r"\((\w+)\) (.+)")
_NARRATED = re.compile(r"\[Narrator\] (.+)")
_CALL = re.compile(r"(\w+) calls (\w+) ({.+})")
_RESULT = re.compile(r"(\w+) returns ({.+})")
_SPOKEN = re.compile(r"(\w+): (.+)")


@dataclass(frozen=True, slots=True)
class Deed:
    """A change of messages: `verb` is edit, swipe, select, pin, hide, exclude, delete or memo."""

    verb: str
    numbers: Sequence[int]
    text: str


@dataclass(frozen=True, slots=True)
class Beat:
    """What happens at once: messages that are appended together, then deeds.

    Attributes:
        at: When the last of the messages is said.
        first, last: The numbers of the first and the last message; a message's number is its seq.
        messages: As they are appended.
        deeds: In order.

    """

    at: datetime
    first: int
    last: int
    messages: list[Json] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Story:
    """The whole of it.

    Attributes:
        beats: What is said and done, in order.
        answers: What the model makes of it, as `model.toml` has it.

    """

    beats: Sequence[Beat]
    answers: Mapping[str, Sequence[Json]]

    def list_wordings(self) -> Iterator[tuple[str, int, bool]]:
        """(text, number, whether it is the first one) of all texts that messages ever have."""
        for beat in self.beats:
            yield from ((message["content"], int(message["id"].removeprefix("m")), True) for message in beat.messages)
            for deed in beat.deeds:
                if deed.verb in ("edit", "swipe"):
                    yield deed.text, deed.numbers[0], False


def read_story() -> Story:
    """Return the story of the two files. Raises ValueError for a line that it cannot parse."""
    lines = (FOLDER / "story.txt").read_text(encoding="utf-8").splitlines()
    answers = tomllib.loads((FOLDER / "model.toml").read_text(encoding="utf-8"))
    return Story(_read_beats(lines), answers)


def _read_beats(lines: Sequence[str]) -> list[Beat]:
    beats: list[Beat] = []
    at: datetime | None = None
    for line in lines:
        if not line or line.startswith("#") or _SCENE.fullmatch(line):
            continue
        if found := _TIME.fullmatch(line):
            at = datetime.strptime(found[1], "%Y-%m-%d %H:%M %z")
        elif found := _DEED.fullmatch(line):
            beats[-1].deeds.append(Deed(found[1], [int(n) for n in found[2].split()], found[3] or ""))
        elif (found := _MESSAGE.fullmatch(line)) and at is not None:
            _add(beats, int(found[1]), _read_message(found[2]), at)
            at += BETWEEN_MESSAGES
        else:
            raise ValueError(f"neither a message nor a time nor a deed: {line}")
    return beats


def _add(beats: list[Beat], number: int, message: Json, at: datetime) -> None:
    """Append a message to the last beat if it answers in it, else to a new one."""
    message = {"id": f"m{number}", "sent_at": at.isoformat(), **message}
    answers = message["role"] in ("assistant", "tool") and bool(beats) and not beats[-1].deeds
    former = beats.pop() if answers else Beat(at, number, number)
    beats.append(replace(former, at=at, last=number, messages=[*former.messages, message]))


def _read_message(text: str) -> Json:
    if found := _NARRATED.fullmatch(text):
        return {"role": "narrator", "content": found[1]}
    if found := _THOUGHT.fullmatch(text):
        return {"role": "assistant", "name": found[1], "kind": "thought", "content": found[2]}
    if found := _CALL.fullmatch(text):
        call = {"id": f"call-{found[2]}", "function": {"name": found[2], "arguments": found[3]}}
        return {"role": "assistant", "name": found[1], "content": "", "tool_calls": [call]}
    if found := _RESULT.fullmatch(text):
        return {"role": "tool", "name": found[1], "tool_call_id": f"call-{found[1]}", "content": found[2]}
    if found := _SPOKEN.fullmatch(text):
        role = "assistant" if found[1] == CAST["characters"][0]["name"] else "user"
        return {"role": role, "name": found[1], "content": found[2]}
    raise ValueError(f"nobody says {text}")
