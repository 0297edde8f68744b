"""The LoCoMo conversations as this service sees them: messages, utterances and the gold observations.

The data set (snap-research/LoCoMo, CC BY-NC 4.0) is not part of the project; its path comes from the command
line or from `LOCOMO`. As a command it writes one conversation as JSONL of messages, as an append takes them:

    python -m bench.locomo --locomo locomo10.json --conversation conv-26 > chat.jsonl
"""

import argparse
import os
import re
import sys
from collections.abc import Container, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from app.summarising.transcript import Utterance

_DIALOGUE_ID = re.compile(r"D\d+:\d+")
_PAUSE = timedelta(seconds=30)
"""The time between two messages; the data has only one time for each session."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `text` includes the caption of an attached picture, in brackets."""

    id: str
    speaker: str
    text: str
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Observation:
    """A statement that people noted about the conversation, and the ids of the messages that support it."""

    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the conversation, its category (1 to 4), and the ids of the messages that answer it."""

    text: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat of two people over weeks. The first speaker has the role of the user, the second of the assistant.

    `questions` are those of the categories 1 to 4 whose evidence is in the conversation.
    """

    id: str
    speakers: tuple[str, str]
    messages: tuple[Message, ...]
    observations: tuple[Observation, ...]
    questions: tuple[Question, ...]

    def utterances(self) -> list[Utterance]:
        """The messages as the summarisers read them, with `seq` from 1."""
        return [
            Utterance(seq, self._role(message), message.speaker, message.text)
            for seq, message in enumerate(self.messages, start=1)
        ]

    def appendable(self) -> list[dict[str, str]]:
        """The messages as an append takes them."""
        return [
            {
                "id": f"{self.id}-{message.id}",
                "role": self._role(message),
                "name": message.speaker,
                "content": message.text,
                "sent_at": message.sent_at.isoformat(),
            }
            for message in self.messages
        ]

    def _role(self, message: Message) -> str:
        return "user" if message.speaker == self.speakers[0] else "assistant"


def read_locomo(path: Path) -> list[Conversation]:
    """Return the conversations of the file at `path`. Raises OSError, KeyError or ValueError for another file."""
    return [_conversation(entry) for entry in orjson.loads(path.read_bytes())]


def add_locomo_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--locomo` to `parser`; the default is the variable `LOCOMO`."""
    default = os.environ.get("LOCOMO")
    parser.add_argument("--locomo", type=Path, default=default, required=default is None, metavar="PATH")


def _conversation(entry: dict[str, Any]) -> Conversation:
    talk = entry["conversation"]
    sittings = sorted((key for key in talk if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:]))
    return Conversation(
        id=entry["sample_id"],
        speakers=(talk["speaker_a"], talk["speaker_b"]),
        messages=tuple(
            _message(turn, began_at + nth * _PAUSE)
            for key in sittings
            for began_at in [datetime.strptime(talk[f"{key}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)]
            for nth, turn in enumerate(talk[key])
        ),
        observations=tuple(
            Observation(text, tuple(_DIALOGUE_ID.findall(str(evidence))))
            for sitting in entry["observation"].values()
            for stated in sitting.values()
            for text, evidence in stated
        ),
        questions=tuple(_list_questions(entry, {turn["dia_id"] for key in sittings for turn in talk[key]})),
    )


def _list_questions(entry: dict[str, Any], known: Container[str]) -> Iterator[Question]:
    for asked in entry["qa"]:
        named = dict.fromkeys(_DIALOGUE_ID.findall(str(asked["evidence"])))
        evidence = tuple(message_id for message_id in named if message_id in known)
        if asked["category"] in range(1, 5) and evidence:
            yield Question(asked["question"], asked["category"], evidence)


def _message(turn: dict[str, Any], sent_at: datetime) -> Message:
    caption = turn.get("blip_caption")
    text = f"{turn['text']} [{caption}]".strip() if caption else turn["text"]
    return Message(turn["dia_id"], turn["speaker"], text, sent_at)


def main() -> None:
    """Write one conversation as JSONL to standard output."""
    parser = argparse.ArgumentParser(description="A LoCoMo conversation as JSONL of messages")
    add_locomo_option(parser)
    parser.add_argument("--conversation", default="conv-26", metavar="ID")
    arguments = parser.parse_args()
    known = {conversation.id: conversation for conversation in read_locomo(arguments.locomo)}
    if arguments.conversation not in known:
        parser.error(f"no conversation {arguments.conversation}; there are {', '.join(known)}")
    for message in known[arguments.conversation].appendable():
        sys.stdout.buffer.write(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main()
