"""The rules for the calls of tools, whatever they write: which replies they name, and what becomes of open ones."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.oracle.chat_machine import ChatMachine, picks
from tests.oracle.driver import Chat
from tests.oracle.reference.lines import Message
from tests.oracle.reference.reimport import Wanted
from tests.talk import Json

ways = st.sampled_from(["none"] * 4 + ["older", "to come", "swipe", "newest swipe"])


class CallRules(ChatMachine):
    """A state machine whose model calls tools that write something, bound to replies."""

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
        return list(dict.fromkeys(str(call.named[0]) for call in self.line.calls if call.is_open and call.named[1]))

    def awaited(self) -> list[str]:
        """Return the ids of messages that calls have named and that are still to come."""
        named = dict.fromkeys(call.named[0] for call in self.line.calls if call.is_open and not call.named[1])
        return [name for name in named if name and self.line.find(name) is None]

    @rule(of_another=st.sampled_from([False, False, True]))
    def discard(self, of_another: bool) -> None:
        """Discard the generation, or that of another character, which the chat does not have."""
        query = {"character": "Somebody else"} if of_another else {}
        dropped = [] if of_another else [call for call in self.line.calls if call.is_open]
        answer = self.request("POST", f"{self.chat.path}/tools/discard", 422 if of_another else 200, **query)
        assert of_another or answer == {"discarded": len(dropped)}
        self.line.calls = [call for call in self.line.calls if call not in dropped]

    def list_calls(self, chat: Chat, **query: str) -> list[Json]:
        """The calls whose writing the line has."""
        items: list[Json] = self.service.request("GET", f"{chat.path}/tools/calls", 200, limit=500, **query)["items"]
        return [item for item in items if item["status"] in ("open", "shown", "hidden")]

    def check_statuses(self, chat: Chat) -> None:
        """Compare the calls of a chat with the reference."""
        line, names = chat.line, ("character", "id", "status", "message_id", "at_seq")
        assert [tuple(item[name] for name in names) for item in self.list_calls(chat)] == [
            (
                line.character,
                call.id,
                "open" if call.is_open else "shown" if call.matches(line) else "hidden",
                call.bound[0] if call.bound else call.named[0],
                call.seq(line),
            )
            for call in line.calls
        ]
