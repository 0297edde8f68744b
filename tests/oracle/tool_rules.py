"""The rules for the diary's tool: call it, repeat calls, and edit, keep or delete what they wrote."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.oracle.call_rules import CallRules, ways
from tests.oracle.chat_machine import picks
from tests.oracle.driver import Chat
from tests.oracle.reference.calls import find_retried, make_call
from tests.oracle.reference.tables import Tables
from tests.talk import Json


class ToolRules(CallRules):
    """A state machine whose model calls the diary's tool.

    Attributes:
        last: The words and the query of the last call.

    """

    def __init__(self) -> None:
        super().__init__()
        self.last: tuple[str, Json] | None = None

    @property
    def tables(self) -> Tables:
        """The rows of the current line."""
        return self.service.tables(self.chat.id, self.line.id)

    @rule(way=ways, pick=picks, again=st.sampled_from([False, False, True]), lines=st.integers(1, 3))
    def call_tool(self, way: str, pick: int, again: bool, lines: int) -> None:
        """Call the tool; with `again`, repeat the last call."""
        words, query = "\n".join(self.new_person_text() for _ in range(lines)), self.name_target(way, pick)
        if again and self.last:
            words, query = self.last
        self.last = words, query
        named = (query.get("message_id"), "swipe" in query)
        call = make_call(self.line, words, named, self.service.clock())
        path = f"{self.chat.path}/tools/save_memory"
        self.request("POST", path, 200 if call else 422, {"content": words}, **query)
        if call is None:
            return
        if find_retried(self.line, call) is None:
            known = {one.id for one in self.line.calls}
            (call.id,) = {item["id"] for item in self.list_calls(self.chat)} - known
            self.line.calls.append(call)

    @rule(pick=picks, how=st.sampled_from(["edit", "delete", "keep", "keep", "let go"]))
    def change_entry(self, pick: int, how: str) -> None:
        if not (ids := self.entry_ids()):
            return
        entry_id = ids[pick % len(ids)]
        path = f"{self.chat.path}/diary/{entry_id}"
        call = next((one for one in self.line.calls if one.id == entry_id), None)
        if how == "delete":
            self.request("DELETE", path, 204)
            if call:
                call.is_deleted = True
        elif how == "edit":
            self.request("PATCH", path, 200, {"content": self.new_person_text()})
            if call:
                call.released = call.edited = True
        else:
            self.service.request_either("PATCH", path, {200, 409}, {"kept": how == "keep"})
            if call:
                call.released = how == "keep" or call.edited

    def entry_ids(self) -> list[str]:
        """Return the ids of the diary entries that have a text."""
        return [str(entry.entry_id) for entry in self.tables.entries if entry.content and not entry.deleted]

    def check_calls(self, chat: Chat, tables: Tables) -> None:
        """Compare the calls of a chat with the reference, and the entries that they wrote.

        An entry that no call accounts for is a person's, the service's, or one that a person kept until its call was
        gone; it is not hidden. A deleted entry is not brought along to a new line, but its call is.
        """
        line = chat.line
        self.check_statuses(chat)
        entries = {str(entry.entry_id): entry for entry in tables.entries}
        for call in line.calls:
            if call.is_deleted:
                entries.pop(call.id, None)
            elif not call.released:
                entry = entries.pop(call.id)
                assert (entry.origin, entry.at_seq) == ("tool", call.seq(line))
                assert entry.hidden == (not call.matches(line))
        assert not [entry for entry in entries.values() if entry.hidden]
