"""The state machine for two chats of one user, who share what they know: facts and core blocks."""

from dataclasses import replace
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.oracle import knowledge_checks as checks
from tests.oracle.call_rules import CallRules, ways
from tests.oracle.chat_machine import kind_lists, picks
from tests.oracle.driver import Chat
from tests.oracle.reference.calls import find_retried, make_call
from tests.oracle.reference.knowledge import (
    BLOCK,
    CHARACTER,
    FACT,
    SCOPES,
    USER,
    Knowledge,
    KnowledgeSettings,
    Lines,
    Said,
    Viewer,
    write,
)
from tests.oracle.reference.lines import Line, Message
from tests.oracle.service import WORD, Snapshot
from tests.talk import Json

SETTINGS = KnowledgeSettings(0, 0, 16, 16, 64, include_system=False)
FILLER = " and so on" * 90
"""Three texts that end with this are too long for a block."""

scopes = st.sampled_from(SCOPES)
learn_scopes = st.sampled_from(["chat", "user", "user", "character"])
keys = st.sampled_from(["city", "pet"])
labels = st.sampled_from(["user", "context"])
operations = st.sampled_from(["replace", "append", "append", "long", "search_replace", "search_replace", "missing"])
repeats = st.sampled_from([False, False, False, True])


class KnowledgeMachine(CallRules):
    """Chats in which people and characters set facts and edit core blocks.

    Attributes:
        knowledge: The reference.
        last: The tool, the arguments and the query of the last call.
        aimed: The message that `pick_message` returns, whatever its argument.

    """

    service: checks.KnowledgeService

    def __init__(self) -> None:
        super().__init__()
        self.knowledge = Knowledge()
        self.order = count(1)
        self.last: tuple[str, Json, Json] | None = None
        self.aimed: Message | None = None

    @initialize(
        opening=st.lists(kind_lists, min_size=1, max_size=2),
        learn=st.tuples(learn_scopes, learn_scopes),
        frozen=st.sampled_from([True, True, False]),
    )
    def begin(self, opening: list[list[str]], learn: tuple[str, str], frozen: bool) -> None:
        """Begin with two chats, in each of which a character has set a fact; with `frozen`, both have a checkpoint."""
        lines = [self.create(chat_id, scope) for chat_id, scope in zip("cd", learn, strict=True)]
        self.begin_on(lines[0], opening, made=False, frozen=False)
        self.chats.append(Chat("d", lines[1], {lines[1].id: lines[1]}))
        for index in (1, 0):
            self.chat_index = index
            self.post_messages(self.new_messages(["user", "assistant"]), set())
            self.use_tool("set_fact", {"key": "city", "value": self.new_person_text()}, {})
            if frozen:
                self.checkpoint()

    def create(self, chat_id: str, scope: str) -> Line:
        settings = replace(SETTINGS, learn_scope=scope)
        body = {"user_id": USER, "characters": [{"name": CHARACTER}], "settings": settings.to_json()}
        return Line(self.request("PUT", f"/chats/{chat_id}", 201, body)["line"], settings, names=[CHARACTER])

    # --- the tools ---

    @rule(key=keys, way=ways, pick=picks, again=repeats)
    def set_fact_by_tool(self, key: str, way: str, pick: int, again: bool) -> None:
        self.use("set_fact", {"key": key, "value": self.new_person_text()}, way, pick, again=again)

    @rule(key=keys, way=ways, pick=picks, again=repeats)
    def forget_fact_by_tool(self, key: str, way: str, pick: int, again: bool) -> None:
        self.use("forget_fact", {"key": key}, way, pick, again=again)

    @rule(label=labels, operation=operations, way=ways, pick=picks, again=repeats)
    def edit_block_by_tool(self, label: str, operation: str, way: str, pick: int, again: bool) -> None:
        text = self.knowledge.blocks(Viewer(self.chat.id), self.lines(), with_open=True).get(label, "")
        arguments = {"block": label, **self.draft(operation, text, pick)}
        self.use("memory_block_update", arguments, way, pick, again=again)

    def use(self, tool: str, arguments: Json, way: str, pick: int, *, again: bool) -> None:
        """Call a tool; with `again`, repeat the last call, which may be one in another chat."""
        query = self.name_target(way, pick)
        if again and self.last:
            tool, arguments, query = self.last
        self.last = tool, arguments, query
        self.use_tool(tool, arguments, query)

    def pass_moment(self) -> None:
        """Let a millisecond pass: of statements of one moment, only those of the same key are dated in order."""
        self.service.clock.step(0.001)

    def use_tool(self, tool: str, arguments: Json, query: Json) -> None:
        self.pass_moment()
        said = self.say_by_tool(tool, arguments)
        named = (query.get("message_id"), "swipe" in query)
        call = make_call(self.line, f"{tool} {arguments}", named, self.service.clock())
        is_unknown = tool == "forget_fact" and said is None  # answered before the reply is looked up
        path = f"{self.chat.path}/tools/{tool}"
        answer = self.request("POST", path, 200 if call or is_unknown else 422, arguments, **query)
        if call is None:
            return
        is_retry = find_retried(self.line, call) is not None
        if said and not is_retry:
            known = {one.id for one in self.line.calls}
            (call.id,) = {item["id"] for item in self.list_calls(self.chat)} - known
            self.line.calls.append(call)
            self.knowledge.said.append(replace(said, id=call.id))
        if "block" in arguments:
            blocks = self.knowledge.blocks(Viewer(self.chat.id), self.lines(), with_open=True)
            written = (
                f"reads:\n{blocks.get(arguments['block'], '')}\nGo on" if said or is_retry else "nothing has changed"
            )
            assert written in answer["result"]

    def say_by_tool(self, tool: str, arguments: Json) -> Said | None:
        """Return what a tool says, in the scope `learn_scope` or that of the deciding statement if it is nearer.

        Returns None if the tool refuses it.
        """
        settings, viewer, lines = self.line.settings, Viewer(self.chat.id), self.lines()
        assert isinstance(settings, KnowledgeSettings)
        kind, key = (FACT, arguments["key"]) if "key" in arguments else (BLOCK, arguments["block"])
        if tool == "forget_fact" and key not in self.knowledge.facts(viewer, lines):
            return None
        deciding = self.knowledge.deciding(kind, key, viewer, lines, with_open=kind == BLOCK)
        scope = min(settings.learn_scope, deciding.scope if deciding else "user", key=SCOPES.index)
        said = self.say(kind, scope, key, arguments.get("value"))
        if kind == FACT:
            return said
        said = replace(said, **_operation(arguments))
        text = self.knowledge.blocks(viewer, lines, with_open=True).get(key, "")
        return None if write(text, said) is None else said

    # --- what people do ---

    @rule(scope=scopes, key=keys, again=repeats)
    def set_fact(self, scope: str, key: str, again: bool) -> None:
        """Set a fact; with `again`, the value that it has in the scope."""
        self.pass_moment()
        held = self.knowledge.facts(Viewer.of(scope, self.chat.id), self.lines()).get(key)
        value = held.content if held and again else self.new_person_text()
        self.request("PUT", f"{self.path(scope)}/facts/{key}", 200 if held else 201, {"value": value})
        if held is None or held.content != value or not self.is_last(held):
            self.knowledge.said.append(self.say(FACT, scope, key, value))

    @rule(scope=scopes, key=keys)
    def delete_fact(self, scope: str, key: str) -> None:
        """Delete a fact, in a chat also one of a wider scope."""
        self.pass_moment()
        viewer = Viewer(self.chat.id) if scope == "chat" else Viewer.of(scope, "")
        held = self.knowledge.facts(viewer, self.lines()).get(key)
        self.request("DELETE", f"{self.path(scope)}/facts/{key}", 204 if held else 404)
        if held:
            self.knowledge.said.append(self.say(FACT, scope, key, None))

    @rule(scope=scopes, label=labels, again=repeats)
    def write_block(self, scope: str, label: str, again: bool) -> None:
        """Write the whole text of a block; with `again`, the text that it has in the scope."""
        self.pass_moment()
        viewer, lines = Viewer.of(scope, self.chat.id), self.lines()
        held = self.knowledge.blocks(viewer, lines).get(label)
        text = held if held is not None and again else self.new_person_text()
        self.request("PUT", f"{self.path(scope)}/blocks/{label}", 201 if held is None else 200, {"text": text})
        about = [one for one in self.knowledge.operations(viewer, lines) if one.key == label]
        is_whole = any(one.operation == "replace" for one in about)
        if held != text or not is_whole or not self.is_last(about[-1]):
            self.knowledge.said.append(replace(self.say(BLOCK, scope, label, text), operation="replace"))

    @rule(scope=scopes, label=labels)
    def delete_block(self, scope: str, label: str) -> None:
        """Take back what was written into a block of a scope."""
        self.pass_moment()
        is_there = label in self.knowledge.blocks(Viewer.of(scope, self.chat.id), self.lines())
        self.request("DELETE", f"{self.path(scope)}/blocks/{label}", 204 if is_there else 404)
        if is_there:
            self.knowledge.said.append(replace(self.say(BLOCK, scope, label, None), operation="replace"))

    def is_last(self, said: Said) -> bool:
        """Whether a person said this, and no reply that any line still has said something about the key since."""
        calls = {
            (chat.id, call.id)
            for chat in self.chats
            for line in (*chat.lines.values(), *(checkpoint.line for checkpoint in chat.checkpoints.values()))
            for call in line.calls
        }
        later = [
            one
            for one in self.knowledge.said
            if (one.kind, one.scope, one.chat, one.key) == (said.kind, said.scope, said.chat, said.key)
            and one.at > said.at
            and any(call_id == one.id and one.chat in ("", chat_id) for chat_id, call_id in calls)
        ]
        return said.origin == "person" and not later

    @rule(scope=scopes, label=labels, operation=operations, pick=picks)
    def edit_block(self, scope: str, label: str, operation: str, pick: int) -> None:
        """Edit a block, in a chat also the text of wider scopes."""
        self.pass_moment()
        viewer = Viewer(self.chat.id) if scope == "chat" else Viewer.of(scope, "")
        text = self.knowledge.blocks(viewer, self.lines()).get(label, "")
        body = self.draft(operation, text, pick)
        said = replace(self.say(BLOCK, scope, label, None), **_operation(body))
        applies = write(text, said) is not None
        self.request("POST", f"{self.path(scope)}/blocks/{label}/edit", 200 if applies else 409, body)
        if applies:
            self.knowledge.said.append(said)

    def draft(self, operation: str, text: str, pick: int) -> Json:
        """Return an operation on a text: `long` appends much, `missing` looks for what the text does not contain."""
        content = self.new_person_text()
        if operation in ("search_replace", "missing"):
            found = ["remember", *WORD.findall(text)] if operation == "search_replace" else ["a bird"]
            pattern = found[pick % len(found)]
            content = content if pick % 3 else ""
            return {"operation": "search_replace", "content": content, "search_pattern": pattern}
        if operation == "long":
            return {"operation": "append", "content": content + FILLER}
        return {"operation": operation, "content": content}

    def say(self, kind: str, scope: str, key: str, content: str | None) -> Said:
        return Said(next(self.order), kind, scope, self.chat.id if scope == "chat" else "", key, content)

    def path(self, scope: str) -> str:
        return self.chat.path if scope == "chat" else checks.PATHS[scope]

    # --- chats and replies ---

    @precondition(lambda self: self.taught())
    @rule(pick=picks, how=st.sampled_from(["swipe", "select", "undo", "delete", "hide", "show"]))
    def change_reply(self, pick: int, how: str) -> None:
        """Change a reply in which something was taught, or restore its text."""
        replies = self.taught()
        self.aimed = replies[pick % len(replies)]
        if how == "swipe":
            self.swipe(pick=pick)
        elif how == "undo":
            self.edit(pick=pick, how="undo")
        elif how == "delete":
            self.delete(pick=pick)
        elif how == "select":
            if self.change_message("PUT", self.aimed, "/swipes/selected", 200, {"index": 0}):
                with self.line.changing():
                    self.aimed.selected = 0
        else:
            self.mark(pick=pick, name="hidden", value=how == "hide")
        self.aimed = None

    def pick_message(self, pick: int) -> Message:
        return self.aimed or super().pick_message(pick)

    def taught(self) -> list[Message]:
        """Return the replies of the calls of the current line."""
        found = [self.line.find(call.bound[0]) for call in self.line.calls if call.bound]
        return [message for message in found if message]

    @precondition(lambda self: self.chat.checkpoints or self.chat.abandoned)
    @rule(pick=picks, back=st.booleans())
    def change_line(self, pick: int, back: bool) -> None:
        """Restore a checkpoint, or, with `back`, switch to an abandoned line, if there is one."""
        if self.chat.abandoned and (back or not self.chat.checkpoints):
            self.switch(pick=pick)
        else:
            self.restore(pick=pick, forget=False)

    @rule(scope=learn_scopes)
    def change_learn_scope(self, scope: str) -> None:
        settings = self.line.settings
        assert isinstance(settings, KnowledgeSettings)
        self.line.settings = replace(settings, learn_scope=scope)
        self.request("PUT", self.chat.path, 200, {"settings": self.line.settings.to_json()})

    @precondition(lambda self: len(self.chats) > 1)
    @rule()
    def erase_chat(self) -> None:
        """Erase the newest chat. What only this chat taught is gone."""
        chat = self.chats.pop()
        self.chat_index = min(self.chat_index, len(self.chats) - 1)
        self.request("DELETE", chat.path, 204)
        self.knowledge.erase(chat.id)

    def note_fork(self, forked: Chat) -> None:
        self.knowledge.fork(self.chat.id, forked.id, forked.line)

    # --- the comparison ---

    def lines(self, *, of: Chat | None = None, line: Line | None = None) -> Lines:
        """Return the line of each chat that counts: the current one, or `line` if the chat `of` is read on that."""
        return {chat.id: line if line and chat is of else chat.line for chat in self.chats}

    def check(self, chat: Chat, *, may_advance: bool, snapshot: Snapshot | None = None) -> None:
        self.check_statuses(chat)
        checks.check_chat(self.service, self.knowledge, chat.id, self.lines())
        for one in self.chats:
            checks.check_prompt(self.service, self.knowledge, one.id, self.lines())

    def learn_results(self, chat: Chat, answer: str, snapshot: Snapshot) -> None:
        pass

    def settle(self) -> None:
        """Compare all chats and scopes."""
        checks.check_scopes(self.service, self.knowledge, self.lines())
        for chat in self.chats:
            checks.check_chat(self.service, self.knowledge, chat.id, self.lines())
            checks.check_histories(self.service, self.knowledge, chat.id, self.lines())
            for message in [one for one in chat.line.not_deleted if one.sendable][-2:]:
                lines = self.lines(of=chat, line=with_calls_before(chat.line, message.seq))
                checks.check_prompt(self.service, self.knowledge, chat.id, lines, before=message.id)

    def check_other_lines(self, chat: Chat) -> None:
        """Compare what abandoned lines and checkpoints know: on these, what people and other chats teach counts too."""
        frozen = [checkpoint.line for checkpoint in chat.checkpoints.values()]
        for line in [*(chat.lines[line_id] for line_id in chat.abandoned), *frozen]:
            lines = self.lines(of=chat, line=line)
            checks.check_chat(self.service, self.knowledge, chat.id, lines, line=line.id)
            checks.check_prompt(self.service, self.knowledge, chat.id, lines, line=line.id)

    def teardown(self) -> None:
        """Erase the chats and then the user; the first leaves what people set, the second leaves nothing."""
        passed = self.last_step_passed
        try:
            super().teardown()
            for chat in self.chats:
                self.knowledge.erase(chat.id)
            if passed:
                checks.check_scopes(self.service, self.knowledge, {})
        finally:
            self.request("DELETE", f"/users/{USER}", 204)
        if passed:
            checks.check_scopes(self.service, Knowledge(), {})


def with_calls_before(line: Line, seq: int) -> Line:
    """Return a line with the calls whose replies are before a message."""
    return replace(line, calls=[call for call in line.calls if call.seq(line) < seq])


def _operation(arguments: Json) -> Json:
    return {
        "operation": arguments["operation"],
        "content": arguments["content"],
        "pattern": arguments.get("search_pattern", ""),
    }
