"""The rules for tool calls: make them, repeat them, discard them, and edit, keep or delete what they wrote."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.oracle.call_reference import find_retried, make_call
from tests.oracle.chat_machine import ChatMachine, picks
from tests.oracle.driver import Chat
from tests.oracle.reference import Message
from tests.oracle.reimport import Wanted
from tests.oracle.tables import Tables
from tests.talk import Json

ways = st.sampled_from(["none"] * 4 + ["older", "to come", "swipe", "newest swipe"])


class ToolRules(ChatMachine):
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

    def name_target(self, way: str, pick: int) -> Json:
        """Return the query of a call."""
        if way == "to come":
            return {"message_id": f"m{next(self.counter)}"}
        if way == "newest swipe":
            return {"swipe": "next"}
        if way == "none" or not self.line.messages:
            return {}
        return {"message_id": self.pick_message(pick).id} | ({"swipe": "next"} if way == "swipe" else {})

    @precondition(lambda self: self.awaited())
    @rule(pick=picks, asked=st.booleans(), by_user=st.sampled_from([False, False, False, True]))
    def post_named(self, pick: int, asked: bool, by_user: bool) -> None:
        """Post a message that a call has named, with `asked` after one of the user."""
        names = self.awaited()
        message = Message(0, names[pick % len(names)], "user" if by_user else "assistant", [self.new_text()])
        self.post_messages([*(self.new_messages(["user"]) if asked else []), message], set())

    @precondition(lambda self: self.swiped())
    @rule(pick=picks, other=picks, how=st.sampled_from(["edit", "swipes", "swipes"]), named=st.booleans(), on=picks)
    def import_awaited(self, pick: int, other: int, how: str, named: bool, on: int) -> None:
        """Import the chat again with a new text for a message whose next alternative is awaited."""
        names = self.swiped()
        wanted = [Wanted(message, message.text) for message in self.line.not_deleted]
        entry = next(one for one in wanted if one.message.id == names[pick % len(names)])
        if how == "edit":
            entry.text = self.new_text()
        else:
            self.add_swipes(entry, other)
        fresh = self.new_messages(["user", "assistant"])[: on % 3]
        at = on % (len(wanted) + 1) if on % 4 == 0 else len(wanted)
        wanted[at:at] = [Wanted(message, message.text, known=False) for message in fresh]
        self.put_messages(wanted, named=named)

    def swiped(self) -> list[str]:
        """Return the ids of messages whose next alternatives are awaited by calls."""
        return sorted({str(call.named[0]) for call in self.line.calls if call.is_open and call.named[1]})

    def awaited(self) -> list[str]:
        """Return the ids of messages that calls have named and that are still to come."""
        named = {call.named[0] for call in self.line.calls if call.is_open and not call.named[1]}
        return sorted(name for name in named if name and self.line.find(name) is None)

    @rule(of_another=st.sampled_from([False, False, True]))
    def discard(self, of_another: bool) -> None:
        """Discard the generation, or that of another character, which the chat does not have."""
        query = {"character": "Somebody else"} if of_another else {}
        dropped = [] if of_another else [call for call in self.line.calls if call.is_open]
        answer = self.request("POST", f"{self.chat.path}/tools/discard", 422 if of_another else 200, **query)
        assert of_another or answer == {"discarded": len(dropped)}
        self.line.calls = [call for call in self.line.calls if call not in dropped]

    @precondition(lambda self: self.entry_ids())
    @rule(pick=picks, how=st.sampled_from(["edit", "delete", "keep", "keep", "let go"]))
    def change_entry(self, pick: int, how: str) -> None:
        ids = self.entry_ids()
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

    def list_calls(self, chat: Chat, **query: str) -> list[Json]:
        items: list[Json] = self.service.request("GET", f"{chat.path}/tools/calls", 200, limit=500, **query)["items"]
        return items

    def check_calls(self, chat: Chat, tables: Tables) -> None:
        """Compare the calls of a chat with the reference, and the entries that they wrote.

        An entry that no call accounts for is a person's, the service's, or one that a person kept until its call was
        gone; it is not hidden. A deleted entry is not brought along to a new line, but its call is.
        """
        line = chat.line
        assert [(item["id"], item["status"], item["message_id"], item["at_seq"]) for item in self.list_calls(chat)] == [
            (
                call.id,
                "open" if call.is_open else "shown" if call.matches(line) else "hidden",
                call.bound[0] if call.bound else call.named[0],
                call.seq(line),
            )
            for call in line.calls
        ]
        entries = {str(entry.entry_id): entry for entry in tables.entries}
        for call in line.calls:
            if call.is_deleted:
                entries.pop(call.id, None)
            elif not call.released:
                entry = entries.pop(call.id)
                assert (entry.origin, entry.at_seq) == ("tool", call.seq(line))
                assert entry.hidden == (not call.matches(line))
        assert not [entry for entry in entries.values() if entry.hidden]
