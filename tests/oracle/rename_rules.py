"""The rule that renames the character of a chat: everything has the new name then, and nothing else changes."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.oracle.chat_machine import ChatMachine, picks
from tests.oracle.reference.lines import NAMES
from tests.oracle.reference.tables import Tables
from tests.oracle.service import Snapshot

new_names = st.sampled_from([*NAMES.values(), "Ilse", "Noor"])
"""The first name, that of the user, and two more."""


class RenameRules(ChatMachine):
    """A state machine whose chats can list a character.

    Its messages are sent under any of its names (`Naming.name_to_send`).
    """

    @precondition(lambda self: self.line.names)
    @rule(name=new_names, pick=picks)
    def rename(self, name: str, pick: int) -> None:
        """Rename the character, maybe back to a name that it had; the request names it by any of its names."""
        before = self.read_unnamed()
        former = self.line.names[pick % len(self.line.names)]
        renamed = self.request("POST", f"{self.chat.path}/characters/{former}/rename", 200, {"name": name})
        self.line.rename(name)
        assert [(one["name"], one.get("aliases", [])) for one in renamed["characters"]] == [
            (name, self.line.names[:-1])
        ]
        assert self.read_unnamed() == before
        self.check_contexts(self.line.names[pick % len(self.line.names)])

    def read_unnamed(self) -> Any:
        """Return what a rename does not change: the memories with their hashes, the work, and the words of the prompt.

        Compared with that of the time before a rename, it shows whether anything became stale or due.
        """
        snapshot, tables = self.service.snapshot(self.chat.id), self.service.tables(self.chat.id, self.line.id)
        return *_unnamed_rows(snapshot), *_unnamed_tables(tables)

    def check_contexts(self, name: str) -> None:
        """Check that contexts have the present name of the character, and are the same for any of its names."""
        line, contexts = self.line, self.service.contexts(self.chat.id)
        assert self.service.contexts(self.chat.id, character=name) == contexts
        sent = [one for one in contexts["openai"]["messages"] if one["role"] == "assistant"]
        assert {one["name"] for one in sent if "name" in one} <= {line.character}
        text, anchor = contexts["text"]["text"], contexts["text"]["history"]["anchor_seq"]
        for message in line.sent_from(anchor):
            if message.role == "assistant" and not message.is_call:
                assert f"{line.character}: {message.text}" in text


def _unnamed_rows(snapshot: Snapshot) -> tuple[Any, ...]:
    row = {name: value for name, value in snapshot.row.items() if name != "memo_window"}  # `window` is the same
    work = {one["id"]: (one["failed"], one["error"]) for one in snapshot.work.values()}
    return row, snapshot.memos, snapshot.book, snapshot.window, snapshot.words, work


def _unnamed_tables(tables: Tables) -> tuple[Any, ...]:
    versions = [replace(one, subject="") for one in tables.versions]
    entries = [replace(one, character="") for one in tables.entries]
    return versions, entries, tables.scenes, tables.lifted
