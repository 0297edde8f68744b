"""The state machine for chats that learn from their messages, each of which is a memory while its text stays."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from app.kit.ids import chat_key
from tests.oracle.chat_machine import ChatMachine, kind_lists
from tests.oracle.driver import Chat
from tests.oracle.reference import Line, Settings
from tests.oracle.service import WORD, Service, Snapshot
from tests.scripted_model import Request, Step, refuses
from tests.talk import Json

USER = "mira"

_OPEN_SEQ = """
    SELECT (cursors #>> '{consolidation,period,first_seq}')::int FROM chats
    WHERE chat_key = $1 AND line_status = 'current'"""


def learn(request: Request) -> str:
    """Return a memory of each message, with its unique word, or NONE."""
    content = str(request["messages"][-1]["content"])
    found = re.search(r"^<messages>\n(.*?)\n</messages>$", content, re.M | re.S)
    said = [json.loads(line)["message"] for line in found[1].splitlines() if line] if found else []
    lines = [
        json.dumps({"memory": word_memory(word), "importance": 0.7, "from": [number]})
        for number, text in enumerate(said, start=1)
        for word in WORD.findall(text)
    ]
    return "\n".join(lines) or "NONE"


def word_memory(word: str) -> str:
    """Return a memory that is similar to no other one."""
    return f"{word} {hashlib.sha256(word.encode()).hexdigest()[:24]}"


ANSWERS: Mapping[str, Step] = {
    "well": learn,
    "nothing": learn,
    "rubbish": learn,
    "misbehaving": learn,
    "refusal": refuses(503),
}


@dataclass(frozen=True)
class LearningSettings(Settings):
    """Settings of a chat that learns after `turns` turns."""

    turns: int
    scope: str

    def to_json(self) -> Json:
        """Return the settings as a request sends them."""
        return {
            **super().to_json(),
            "memos": {"enabled": False, "include_system": self.include_system},
            "memories": {"learn_scope": self.scope},
            # What another chat learns in a wide scope changes the contexts of frozen lines, which are compared.
            "blocks": {"from_memories": self.scope == "chat"},
            "consolidation": {"enabled": True, "every_turns": self.turns},
        }


@st.composite
def draw_settings(draw: st.DrawFn) -> LearningSettings:
    """Draw settings under which ranges and cuts end within a few messages."""
    keep, grow, turns = draw(st.integers(2, 4)), draw(st.integers(0, 3)), draw(st.sampled_from([1, 1, 2, 5]))
    most, max_turns = keep + grow + draw(st.sampled_from([2, 10, 32])), draw(st.sampled_from([0, 0, 2, 3]))
    scope = draw(st.sampled_from(["chat", "character", "user", "global"]))
    return LearningSettings(0, 0, keep, grow, most, draw(st.booleans()), turns, scope, max_turns=max_turns)


class LearningService(Service):
    """A service whose ranges of messages can be read."""

    def open_seq(self, chat_id: str) -> int:
        """Return where the range begins that is still open, on the current line of a chat."""

        async def read() -> int:
            async with self.database.raw() as connection:
                found: int = await connection.fetchval(_OPEN_SEQ, chat_key(self.tenant, chat_id))
            return found

        open_seq: int = self.run(read())
        return open_seq


class LearningMachine(ChatMachine):
    """Chats that learn from their messages."""

    service: LearningService
    model_answers = ANSWERS

    def __init__(self) -> None:
        super().__init__()
        self.texts = count()

    @initialize(
        settings=draw_settings(),
        opening=st.lists(kind_lists, min_size=1, max_size=4),
        made=st.booleans(),
        frozen=st.booleans(),
    )
    def begin(self, settings: LearningSettings, opening: list[list[str]], made: bool, frozen: bool) -> None:
        body = {"user_id": USER, "characters": [{"name": "Kai"}], "settings": settings.to_json()}
        line = self.request("PUT", "/chats/c", 201, body)["line"]
        self.begin_on(Line(line, settings), opening, made=made, frozen=frozen)

    @rule(turns=st.sampled_from([1, 2, 5]))
    def change_turns(self, turns: int) -> None:
        settings = self.line.settings
        assert isinstance(settings, LearningSettings)
        self.line.settings = replace(settings, turns=turns)
        self.request("PUT", self.chat.path, 200, {"settings": self.line.settings.to_json()})

    def new_text(self) -> str:
        """Return a text; every other one has a word to learn."""
        number = next(self.counter)
        return f"lamp w{number}w" if next(self.texts) % 2 == 0 else f"lamp {number}"

    # --- the comparison ---

    def check(self, chat: Chat, *, may_advance: bool, snapshot: Snapshot | None = None) -> None:
        """Check that no chat knows what no message says."""
        for one in self.chats:
            assert self.known(one) <= self.said(one, read=False)

    def learn_results(self, chat: Chat, answer: str, snapshot: Snapshot) -> None:
        errors = [row["error"] for row in snapshot.work.values()]
        assert not [error for error in errors if "unexpected" in (error or "")]
        self.check(chat, may_advance=True)

    def settle(self) -> None:
        """Check that each chat knows what its messages say, up to the range that is still open."""
        for chat, snapshot in self.settle_chats():
            assert not snapshot.work
            assert self.said(chat, read=True) <= self.known(chat)
            assert self.exported(chat) == self.known(chat)
            self.check(chat, may_advance=True)

    def known(self, chat: Chat) -> set[str]:
        """Return the unique words of the memories that a chat has."""
        listed = self.request("GET", f"{chat.path}/memories", 200, limit=500)["items"]
        return set(WORD.findall(" ".join(item["content"] for item in listed)))

    def exported(self, chat: Chat) -> set[str]:
        """Return the unique words of the memories that the state of a chat contains."""
        state = self.request("GET", f"{chat.path}/state", 200)["layers"]["memories"]
        return set(WORD.findall(" ".join(item["content"] for item in state)))

    def said(self, chat: Chat, *, read: bool) -> set[str]:
        """Return the unique words that can be learnt now; with `read`, only those that must have been learnt."""
        settings = chat.line.settings
        assert isinstance(settings, LearningSettings)
        chats = [chat] if settings.scope == "chat" else self.chats
        texts = [
            message.text
            for one in chats
            for message in one.line.eligible(1, self.service.open_seq(one.id) - 1 if read else one.line.head)
        ]
        return set(WORD.findall(" ".join(texts)))
