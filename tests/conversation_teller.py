"""How the story of a changing conversation is told: what each step of the machine is made of.

The machine itself (`conversation_machine.py`) has the steps; here are the requests behind them, what the model
learns from the service, and how one is held against the other.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from tests import conversation_checks as checks
from tests.conversation_model import NAMES, Line, Memo, Said
from tests.conversation_reimport import Wanted, divergence, reimport
from tests.conversation_service import WORD, Seen, Service, telling_memo
from tests.scripted_model import Step, refuses
from tests.talk import Json

ANSWERS: dict[str, Step] = {
    "well": telling_memo,
    "nothing": "NONE",
    "rubbish": "As a language model I would rather talk about something else. Shall we? It could be fun.",
    "refusal": refuses(503),
}

ROLES = {"thought": "assistant", "blank": "assistant", "call": "assistant", "result": "tool"}
TEXTS: dict[str, Callable[[], str]] = {"blank": lambda: " ", "call": str}


@dataclass
class Checkpoint:
    """A frozen line, and the context in every format that stood there."""

    line: Line
    contexts: dict[str, Json]


@dataclass
class Chat:
    """A chat as it should be.

    Attributes:
        line: The current line.
        lines: All lines but the checkpoints', by their ids.
        left: The context of each abandoned line, in every format, as it was left.
        checkpoints: By their names.
        ever: Every message that was ever appended, as it was appended first.

    """

    id: str
    line: Line
    lines: dict[str, Line] = field(default_factory=dict)
    left: dict[str, dict[str, Json]] = field(default_factory=dict)
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    ever: list[Said] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/chats/{self.id}"


class Storyteller(RuleBasedStateMachine):
    """Chats as they should be, and the service that should have them so.

    Attributes:
        sound: Whether all was well after the last step: only then the end is checked.
        forward, back: Where the anchor may move in the step that is being made.
        appended: Whether it appends something new.

    """

    service: Service

    def __init__(self) -> None:
        super().__init__()
        self.chats: list[Chat] = []
        self.at = 0
        self.counter = count(1)
        self.sound = False
        self.forget_step()

    def forget_step(self) -> None:
        """What the next step may do to the anchor; nothing unless it says so."""
        self.forward = self.back = self.appended = False

    @property
    def chat(self) -> Chat:
        return self.chats[self.at]

    @property
    def line(self) -> Line:
        return self.chat.line

    def check(self, chat: Chat, *, forward: bool, seen: Seen | None = None) -> None:
        """Look at a chat and hold it against the model, which learns the ids of new memos."""
        line, seen = chat.line, seen or self.service.look(chat.id)
        by_batch: dict[tuple[int, ...], str] = {(row["first_seq"], row["last_seq"]): row["id"] for row in seen.memos}
        for memo in line.batches:
            memo.id = memo.id or by_batch.get(memo.batch or (), "")
        checks.check_line(line, seen)
        checks.check_moves(line, seen, forward=forward, back=self.back)
        if self.appended:
            checks.check_cut_after_append(line, seen, back=self.back)
        line.anchor = seen.anchor

    def read_again(self, chat: Chat) -> None:
        """Lines that were abandoned, and checkpoints, read as they were left."""
        listed = self.ask("GET", f"{chat.path}/lines", 200, limit=500)["items"]
        assert {row["line"]: (row["current"], row["head_seq"], row["messages"]) for row in listed} == {
            line.id: (line is chat.line, line.head, len(line.living)) for line in chat.lines.values()
        }
        frozen = [(checkpoint.line, checkpoint.contexts) for checkpoint in chat.checkpoints.values()]
        for line, contexts in [*((chat.lines[line_id], left) for line_id, left in chat.left.items()), *frozen]:
            assert self.service.contexts(chat.id, line=line.id) == contexts
            listed = self.ask("GET", f"{chat.path}/messages", 200, limit=500, line=line.id)["items"]
            book = self.ask("GET", f"{chat.path}/memos", 200, limit=500, line=line.id)["items"]
            checks.check_as_left(line, listed, book)

    def ask(self, method: str, path: str, status: int, body: Any = None, **query: Any) -> Json:
        self.sound = False
        return self.service.ask(method, path, status, body, **query)

    def change(self, method: str, said: Said, path: str, status: int, body: Json | None = None) -> bool:
        """Change a message; a tombstone refuses. Says whether it was changed."""
        self.back = True
        self.ask(method, f"{self.chat.path}/messages/{said.id}{path}", 404 if said.deleted else status, body)
        return not said.deleted

    def append(self, given: list[Said], unnamed: set[str]) -> None:
        """Append what is new of `given`; ids in `unnamed` are left to the service."""
        body = [sending(said) | ({"id": None} if said.id in unnamed and not said.calls else {}) for said in given]
        known = {said.id: said.seq for said in self.line.messages}
        fresh = [said for said in given if said.id not in known]
        answer = self.ask("POST", f"{self.chat.path}/messages", 201 if fresh else 200, {"messages": body})
        assert answer["created"] == len(fresh)
        ids = [told["id"] for told in answer["messages"]]
        seqs = [told["seq"] for told in answer["messages"]]
        for said, message_id in zip(given, ids, strict=True):
            assert said.id in (message_id, *unnamed)
            said.id = message_id
        if fresh:
            self.chat.ever += deepcopy(
                [said for said in fresh if all(said.id != before.id for before in self.chat.ever)]
            )
            self.line.append(fresh)
            self.forward = self.appended = True
        assert seqs == [known.get(said.id, said.seq) for said in given]

    def clash(self, said: Said) -> None:
        """An id with another text than it was appended with refuses the whole request, though it says that by now."""
        if said.text != said.first_text:
            (new,) = self.make(["user"])
            body = [sending(new), sending(said) | {"content": said.text}]
            problem = self.ask("POST", f"{self.chat.path}/messages", 409, {"messages": body})
            (error,) = problem["errors"]
            assert (error["loc"], error["id"]) == (["body", "messages", 1, "id"], said.id)

    def put_list(self, wanted: list[Wanted], *, named: bool) -> None:
        """Have the chat be a list, on another line where that is needed."""
        diverges = divergence(wanted) is not None
        if diverges:
            self.leave()
        body = []
        for entry in wanted:
            said = entry.said
            tells = entry.known and not said.deleted and entry.text == said.text and said.text.strip()
            body.append(sending(said) | {"content": entry.text} | ({} if named or not tells else {"id": None}))
        self.chat.ever += deepcopy([entry.said for entry in wanted if not entry.known])
        answer = self.ask("PUT", f"{self.chat.path}/messages", 200, {"messages": body})
        line, counts = reimport(self.line, wanted)
        if diverges:
            assert answer["line"] not in self.chat.lines
            self.go_on(line, answer["line"])
        assert answer == counts | {"line": self.line.id}
        self.forward = self.back = True
        self.appended = diverges or not all(entry.known for entry in wanted)

    def leave(self) -> None:
        """Remember the context of the line that is going to be abandoned."""
        self.chat.left[self.line.id] = self.service.contexts(self.chat.id)

    def go_on(self, line: Line, line_id: str) -> None:
        line.id = line_id
        self.chat.line = self.chat.lines[line_id] = line

    def drain(self, answer: str, wait_s: float) -> None:
        self.sound = False
        self.service.model.otherwise = ANSWERS[answer]
        self.service.clock.step(wait_s)
        self.service.do(self.service.sweep.drain())

    def learn(self, chat: Chat, answer: str, seen: Seen) -> None:
        """What has been made on a chat's current line: what is no longer due, and it must be as the model answered."""
        book = {item["id"]: item for item in seen.book}
        for memo in chat.line.batches:
            if not chat.line.needs_work(memo):
                continue
            if memo.id in seen.work:
                memo.failed = seen.work[memo.id]["failed"]
                continue
            memo.made_from = chat.line.source(memo)
            memo.text, memo.status = book[memo.id]["text"], book[memo.id]["status"]
            memo.by_person = memo.edited = memo.asked = memo.failed = False
            words = WORD.findall(" ".join(text for _, _, _, text in memo.made_from))
            assert answer in ("well", "nothing") or not memo.made_from
            assert WORD.findall(memo.text) == (words if answer == "well" else [])
            assert memo.status == ("ready" if memo.text else "empty")
        self.check(chat, forward=True, seen=seen)

    def pick(self, pick: int) -> Said:
        """A message, now and then one that was deleted."""
        choice = self.line.living if pick % 8 and self.line.living else self.line.messages
        return choice[pick % len(choice)]

    def pick_memo(self, pick: int) -> Memo:
        return self.line.book[pick % len(self.line.book)]

    def word(self) -> str:
        return f"lamp w{next(self.counter)}w"

    def written(self) -> str:
        return f"They remember p{next(self.counter)}p."

    def make(self, chapter: list[str]) -> list[Said]:
        """New messages of these kinds; a result answers the last call that has none yet."""
        made: list[Said] = []
        for kind in chapter:
            said = Said(0, f"m{next(self.counter)}", ROLES.get(kind, kind), [TEXTS.get(kind, self.word)()])
            if kind == "thought":
                said.kind = kind
            elif kind == "call":
                said.calls = True
            elif kind == "result":
                told = [*self.line.messages, *made]
                answered = {before.answers for before in told}
                calls = [before.id for before in told if before.calls and before.id not in answered]
                said.answers = calls[-1] if calls else "nobody"
            made.append(said)
        return made


def sending(said: Said) -> Json:
    """A message as it is appended the first time."""
    function = {"name": "look", "arguments": "{}"}
    return {
        "id": said.id,
        "role": said.role,
        "name": NAMES.get(said.role),
        "content": said.first_text,
        "kind": said.kind,
        "tool_calls": [{"id": f"call-{said.id}", "type": "function", "function": function}] if said.calls else None,
        "tool_call_id": f"call-{said.answers}" if said.answers else None,
    }
