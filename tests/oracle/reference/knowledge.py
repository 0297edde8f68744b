"""The reference model of what the chats of one user know: facts and core blocks.

All that was ever said is in one list. Whether a statement is live, which one holds, and what the text of a block is
are looked up in it each time, with the calls of the lines (`calls.py`). Nothing follows changes of messages.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

from tests.oracle.reference.lines import Line, Settings
from tests.talk import Json

SCOPES = ("chat", "character", "user")
"""The scopes, the nearest first."""

CHARACTER, USER = "Kai", "mira"
MAX_CHARS = 2_000

FACT, BLOCK = "fact", "block"

Lines = Mapping[str, Line]
"""The line that counts of each chat, by the chat's id: the current one, or the one that is read."""


@dataclass(frozen=True)
class KnowledgeSettings(Settings):
    """The settings of a chat that makes no summaries; its tools write into the scope `learn_scope`."""

    learn_scope: str = "chat"

    def to_json(self) -> Json:
        """Return the settings as a request sends them."""
        return {
            "memos": {"enabled": False},
            "history": {"keep_messages": self.keep, "grow_messages": self.grow, "max_messages": self.most},
            "sessions": {"max_turns": self.max_turns or None},
            "memories": {"learn_scope": self.learn_scope},
        }


@dataclass(frozen=True)
class Said:
    """A statement.

    Attributes:
        at: Its position in the order of all statements; a fork's copy has that of the original.
        scope: One of SCOPES.
        chat: The chat's id if the scope is `chat`, else "".
        key: The fact's key or the block's label.
        content: What it says or writes; None if a fact has no value any more, or if it deletes a block of the scope.
        operation, pattern: What it does with the text of a block.
        id: The id of the call that said it; "" if a person did.

    """

    at: int
    kind: str
    scope: str
    chat: str
    key: str
    content: str | None
    operation: str = ""
    pattern: str = ""
    id: str = ""

    @property
    def origin(self) -> str:
        return "tool" if self.id else "person"

    @property
    def is_deletion(self) -> bool:
        return self.operation == "replace" and self.content is None

    def is_live(self, lines: Lines, open_in: str | None) -> bool:
        """Whether a person said it, or a reply that has its text now; of a chat's own statement, one of that chat.

        The open calls of the chat `open_in` count, too.
        """
        return not self.id or any(
            call.id == self.id and (call.matches(line) or (call.is_open and chat_id == open_in))
            for chat_id, line in lines.items()
            if self.chat in ("", chat_id)
            for call in line.calls
        )


@dataclass(frozen=True)
class Viewer:
    """Who reads: a chat, which sees all scopes, or a single scope."""

    chat: str = ""
    scopes: Sequence[str] = SCOPES

    @classmethod
    def of(cls, scope: str, chat_id: str) -> "Viewer":
        """Return the view of one scope; only that of a chat depends on the chat."""
        return cls(chat_id if scope == "chat" else "", (scope,))

    def sees(self, said: Said) -> bool:
        return said.scope in self.scopes and said.chat in ("", self.chat)


@dataclass
class Knowledge:
    """All statements of all chats, in the order in which they were said."""

    said: list[Said] = field(default_factory=list)

    def live(self, kind: str, viewer: Viewer, lines: Lines, *, with_open: bool = False) -> list[Said]:
        """Return the live statements that a viewer sees: those of wider scopes first, and in a scope the older ones.

        `with_open` includes those of the chat's own open calls.
        """
        found = [
            one
            for one in self.said
            if one.kind == kind and viewer.sees(one) and one.is_live(lines, viewer.chat if with_open else None)
        ]
        return sorted(found, key=lambda one: (-SCOPES.index(one.scope), one.at))

    def facts(self, viewer: Viewer, lines: Lines) -> dict[str, Said]:
        """Return the fact that holds for each key: the newest of the nearest scope, unless it takes the value away."""
        deciding = {one.key: one for one in self.live(FACT, viewer, lines)}
        return {key: one for key, one in deciding.items() if one.content is not None}

    def operations(self, viewer: Viewer, lines: Lines, *, with_open: bool = False) -> list[Said]:
        """Return the live operations on blocks, in the order of `live`, that were not deleted in their scope since."""
        found: list[Said] = []
        for one in self.live(BLOCK, viewer, lines, with_open=with_open):
            if one.is_deletion:
                found = [before for before in found if (before.scope, before.key) != (one.scope, one.key)]
            else:
                found.append(one)
        return found

    def blocks(self, viewer: Viewer, lines: Lines, *, with_open: bool = False) -> dict[str, str]:
        """Return the text of each block that anything was written into."""
        texts: dict[str, str] = {}
        operations = self.operations(viewer, lines, with_open=with_open)
        for label in sorted({one.key for one in operations}):
            left = [one for one in operations if one.key == label]
            for _, group in groupby(list(left), key=lambda one: one.scope):
                of_scope = list(group)
                texts[label] = write_scope(texts.get(label, ""), of_scope, [one.pattern for one in left if one.pattern])
                left = left[len(of_scope) :]
        return texts

    def deciding(self, kind: str, key: str, viewer: Viewer, lines: Lines, *, with_open: bool = False) -> Said | None:
        """Return the newest live statement about a key in the nearest scope that has one."""
        read = self.operations if kind == BLOCK else partial(self.live, kind)
        about = [one for one in read(viewer, lines, with_open=with_open) if one.key == key]
        return about[-1] if about else None

    def history(self, kind: str, key: str, viewer: Viewer, lines: Lines) -> list[Said]:
        """Return the live statements about a key in all scopes, newest first."""
        about = [one for one in self.live(kind, viewer, lines) if one.key == key]
        return sorted(about, key=lambda one: one.at, reverse=True)

    def fork(self, chat_id: str, target_id: str, line: Line) -> None:
        """Copy a chat's own statements to its fork, whose line is `line`: those of people, and what the line taught."""
        taught = {"", *(call.id for call in line.calls)}
        self.said += [replace(one, chat=target_id) for one in self.said if one.chat == chat_id and one.id in taught]

    def erase(self, chat_id: str) -> None:
        """Drop the statements of a chat itself."""
        self.said = [one for one in self.said if one.chat != chat_id]


def write_scope(text: str, said: Sequence[Said], patterns: Sequence[str]) -> str:
    """Return the text of a block after the operations of a scope. The first lines of the wider text give way to them.

    As few lines as possible are dropped, so that no more operations are too long than without the wider text. The lines
    with the last occurrence of a pattern of this scope or a nearer one are dropped after all others.
    """
    lines = text.split("\n")
    order = sorted(range(len(lines)), key=lambda at: any(has_last(lines, at, pattern) for pattern in patterns))
    kept = [[line for at, line in enumerate(lines) if at in order[dropped:]] for dropped in range(len(lines) + 1)]
    outcomes = [write_all("\n".join(left), said) for left in kept]
    fits = [too_long <= outcomes[-1][1] for _, too_long in outcomes]
    return outcomes[0 if fits[0] else bisect_left(fits, True)][0]


def has_last(lines: Sequence[str], at: int, pattern: str) -> bool:
    """Return whether the last occurrence of a pattern touches the line with an index."""
    before, found, after = "\n".join(lines).rpartition(pattern)
    return bool(found) and before.count("\n") <= at <= len(lines) - 1 - after.count("\n")


def write_all(text: str, said: Sequence[Said]) -> tuple[str, int]:
    """Return the text of a block after operations, and how many of them would make it too long."""
    too_long = 0
    for one in said:
        after = write(text, one)
        too_long += after is None and not (one.operation == "search_replace" and (one.pattern or "") not in text)
        text = text if after is None else after
    return text, too_long


def write(text: str, said: Said) -> str | None:
    """Return the text of a block after an operation; None if it does not apply."""
    content = said.content or ""
    if said.operation == "append":
        after = f"{text}\n{content}" if text else content
    elif said.operation == "search_replace":
        if said.pattern not in text:
            return None
        after = content.join(text.split(said.pattern))
    else:
        after = content
    return after if len(after) <= MAX_CHARS else None


def sources_of(said: Said, line: Line) -> list[str]:
    """Return the message of a line that taught a statement, as a source."""
    replies = [call.bound[0] for call in line.calls if call.id == said.id and call.matches(line) and call.bound]
    return [f"message:{message_id}" for message_id in replies]
