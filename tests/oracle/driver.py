"""The base of the state machines: it sends requests to the service and applies the same changes to the reference."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from tests.oracle import checks
from tests.oracle.answers import ANSWERS, GOOD, REFUSED, UNCERTAIN
from tests.oracle.reference.lines import Line, Memo, Message
from tests.oracle.reference.reimport import (
    Wanted,
    divergence,
    is_found_by_neighbours,
    is_found_by_text,
    is_revived_by_text,
    reimport,
)
from tests.oracle.service import WORD, Service, Snapshot
from tests.scripted_model import Step
from tests.talk import Json

ROLES = {"thought": "assistant", "blank": "assistant", "call": "assistant", "result": "tool"}
TEXTS: dict[str, Callable[[], str]] = {"blank": lambda: " ", "call": str}


@dataclass
class Checkpoint:
    """A frozen line and its context in each format."""

    line: Line
    contexts: dict[str, Json]


@dataclass
class Chat:
    """The reference of a chat.

    Attributes:
        line: The current line.
        lines: All lines except those of checkpoints, by id.
        abandoned: The context of each abandoned line in each format, at the time it was abandoned.
        checkpoints: By name.
        posted: Each message that was ever appended, as it was sent the first time.

    """

    id: str
    line: Line
    lines: dict[str, Line] = field(default_factory=dict)
    abandoned: dict[str, dict[str, Json]] = field(default_factory=dict)
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    posted: list[Message] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/chats/{self.id}"


class Driver(RuleBasedStateMachine):
    """The service and the reference of its chats.

    Attributes:
        last_step_passed: Whether the checks after the last step passed; otherwise `teardown` checks nothing.
        may_advance, may_go_back: In which directions the anchor may move in the current step.
        appended: Whether the current step appends new messages.
        model_answers: The answers of the scripted model, by name.

    """

    service: Service
    model_answers: Mapping[str, Step] = ANSWERS

    def __init__(self) -> None:
        super().__init__()
        self.chats: list[Chat] = []
        self.chat_index = 0
        self.counter = count(1)
        self.last_step_passed = False
        self.reset_step()

    def reset_step(self) -> None:
        """Begin a step in which the anchor may not move until the step allows it."""
        self.may_advance = self.may_go_back = self.appended = False

    @property
    def chat(self) -> Chat:
        return self.chats[self.chat_index]

    @property
    def line(self) -> Line:
        return self.chat.line

    def check(self, chat: Chat, *, may_advance: bool, snapshot: Snapshot | None = None) -> None:
        """Compare a chat with its reference, and copy the ids of new memos into the reference."""
        line, snapshot = chat.line, snapshot or self.service.snapshot(chat.id)
        by_batch: dict[tuple[int, ...], str] = {
            (row["first_seq"], row["last_seq"]): row["id"] for row in snapshot.memos
        }
        for memo in line.batches:
            memo.id = memo.id or by_batch.get(memo.batch or (), "")
        checks.check_line(line, snapshot)
        checks.check_moves(line, snapshot, may_advance=may_advance, may_go_back=self.may_go_back)
        if self.appended:
            checks.check_cut_after_append(line, snapshot, may_go_back=self.may_go_back)
        line.anchor = snapshot.anchor

    def check_other_lines(self, chat: Chat) -> None:
        """Check that abandoned lines and checkpoints have not changed."""
        listed = self.request("GET", f"{chat.path}/lines", 200, limit=500)["items"]
        assert {row["line"]: (row["current"], row["head_seq"], row["messages"]) for row in listed} == {
            line.id: (line is chat.line, line.head, len(line.not_deleted)) for line in chat.lines.values()
        }
        frozen = [(checkpoint.line, checkpoint.contexts) for checkpoint in chat.checkpoints.values()]
        abandoned = [(chat.lines[line_id], contexts) for line_id, contexts in chat.abandoned.items()]
        for line, contexts in [*abandoned, *frozen]:
            assert self.service.contexts(chat.id, line=line.id) == contexts
            listed = self.request("GET", f"{chat.path}/messages", 200, limit=500, line=line.id)["items"]
            book = self.request("GET", f"{chat.path}/memos", 200, limit=500, line=line.id)["items"]
            checks.check_unchanged(line, listed, book)

    def request(self, method: str, path: str, status: int, body: Any = None, **query: Any) -> Json:
        self.last_step_passed = False
        return self.service.request(method, path, status, body, **query)

    def change_message(self, method: str, message: Message, path: str, status: int, body: Json | None = None) -> bool:
        """Change a message and return whether it was changed; for a deleted message the service answers 404."""
        self.may_go_back = True
        self.request(method, f"{self.chat.path}/messages/{message.id}{path}", 404 if message.deleted else status, body)
        return not message.deleted

    def post_messages(self, given: list[Message], unnamed: set[str]) -> None:
        """Post messages, of which some may be known already; the service assigns the ids that are in `unnamed`."""
        body = [
            as_posted(self.line, message) | ({"id": None} if message.id in unnamed and not message.is_call else {})
            for message in given
        ]
        known = {message.id: message.seq for message in self.line.messages}
        fresh = [message for message in given if message.id not in known]
        answer = self.request("POST", f"{self.chat.path}/messages", 201 if fresh else 200, {"messages": body})
        assert answer["created"] == len(fresh)
        for message, item in zip(given, answer["messages"], strict=True):
            assert message.id in (item["id"], *unnamed)
            message.id = item["id"]
        if fresh:
            self.chat.posted += deepcopy(
                [message for message in fresh if all(message.id != before.id for before in self.chat.posted)]
            )
            self.line.append(fresh, self.service.clock())
            self.may_advance = self.appended = True
        seqs = [item["seq"] for item in answer["messages"]]
        assert seqs == [known.get(message.id, message.seq) for message in given]

    def check_id_conflict(self, message: Message) -> None:
        """Check that a known id with a text that differs from the first one fails, even if the message has that text.

        The service rejects the whole request.
        """
        if message.text != message.first_text:
            (new,) = self.new_messages(["user"])
            body = [as_posted(self.line, new), as_posted(self.line, message) | {"content": message.text}]
            problem = self.request("POST", f"{self.chat.path}/messages", 409, {"messages": body})
            (error,) = problem["errors"]
            assert (error["loc"], error["id"]) == (["body", "messages", 1, "id"], message.id)

    def put_messages(self, wanted: list[Wanted], *, named: bool) -> None:
        """Import a list of messages, which creates a line if a message was inserted or has moved.

        Without `named`, messages are sent without their ids if their texts or their neighbours identify them. If
        messages are missing, one that has moved could be a missing one whose text was edited; then all ids are sent.
        """
        diverges = divergence(wanted) is not None
        kept = {entry.message.id for entry in wanted}
        named = named or (diverges and any(message.id not in kept for message in self.line.not_deleted))
        if diverges:
            self.record_context()
        body = []
        for index, entry in enumerate(wanted):
            message = entry.message
            found = is_found_by_text(entry) or is_found_by_neighbours(self.line, wanted, index)
            found = found or is_revived_by_text(self.line, wanted, index)
            without_id = {"id": None} if found and not named else {}
            swipes = {"swipes": entry.swipes, "selected_swipe": entry.swipes.index(entry.text)} if entry.swipes else {}
            body.append(as_posted(self.line, message) | {"content": entry.text} | swipes | without_id)
        self.chat.posted += deepcopy([entry.message for entry in wanted if not entry.known])
        answer = self.request("PUT", f"{self.chat.path}/messages", 200, {"messages": body})
        line, counts = reimport(self.line, wanted, self.service.clock())
        if diverges:
            assert answer["line"] not in self.chat.lines
            self.set_current_line(line, answer["line"])
        assert answer == counts | {"line": self.line.id}
        self.may_advance = self.may_go_back = True
        self.appended = diverges or not all(entry.known for entry in wanted)

    def record_context(self) -> None:
        """Record the context of the current line, which the next request abandons."""
        self.chat.abandoned[self.line.id] = self.service.contexts(self.chat.id)

    def set_current_line(self, line: Line, line_id: str) -> None:
        line.id = line_id
        self.chat.line = self.chat.lines[line_id] = line

    def drain(self, answer: str, wait_s: float) -> None:
        """Let time pass and run the work that is due then."""
        self.last_step_passed = False
        self.service.model.otherwise = self.model_answers[answer]
        self.service.clock.step(wait_s)
        self.service.run(self.service.dispatcher.drain())

    def learn_results(self, chat: Chat, answer: str, snapshot: Snapshot) -> None:
        """Copy new memos into the reference, after a check that each one has the text of the model's answer."""
        book = {item["id"]: item for item in snapshot.book}
        for memo in chat.line.batches:
            if not chat.line.needs_work(memo):
                continue
            if memo.id in snapshot.work:
                memo.failed = snapshot.work[memo.id]["failed"]
                continue
            memo.made_from = chat.line.current_source(memo)
            memo.text, memo.status = book[memo.id]["text"], book[memo.id]["status"]
            memo.by_person = memo.edited = memo.requested = memo.failed = False
            words = WORD.findall(" ".join(text for _, _, _, text in memo.made_from))
            assert answer in (*GOOD, "nothing", *REFUSED, *UNCERTAIN) or not memo.made_from
            memo.partial = answer in (*REFUSED, *UNCERTAIN)
            if memo.partial:
                assert set(WORD.findall(memo.text)) <= set(words)
            else:
                assert WORD.findall(memo.text) == (words if answer in GOOD else [])
            assert memo.status == ("ready" if memo.text else "empty")
        self.check(chat, may_advance=True, snapshot=snapshot)

    def pick_message(self, pick: int) -> Message:
        """Return a message, in some cases a deleted one."""
        choice = self.line.not_deleted if pick % 8 and self.line.not_deleted else self.line.messages
        return choice[pick % len(choice)]

    def pick_memo(self, pick: int) -> Memo:
        return self.line.book[pick % len(self.line.book)]

    def new_text(self) -> str:
        return f"lamp w{next(self.counter)}w"

    def new_person_text(self) -> str:
        return f"They remember p{next(self.counter)}p."

    def new_messages(self, kinds: list[str]) -> list[Message]:
        """Return new messages of these kinds; a result answers the last call that has no result yet."""
        made: list[Message] = []
        for kind in kinds:
            message = Message(0, f"m{next(self.counter)}", ROLES.get(kind, kind), [TEXTS.get(kind, self.new_text)()])
            if kind == "thought":
                message.kind = kind
            elif kind == "call":
                message.is_call = True
            elif kind == "result":
                present = [*self.line.messages, *made]
                answered = {before.result_of for before in present}
                calls = [before.id for before in present if before.is_call and before.id not in answered]
                message.result_of = calls[-1] if calls else "unknown"
            made.append(message)
        return made


def as_posted(line: Line, message: Message) -> Json:
    """Return the JSON of a message as it is posted to a line the first time."""
    call = {"id": f"call-{message.id}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return {
        "id": message.id,
        "role": message.role,
        "name": line.name_to_send(message),
        "content": message.first_text,
        "kind": message.kind,
        "tool_calls": [call] if message.is_call else None,
        "tool_call_id": f"call-{message.result_of}" if message.result_of else None,
    }
