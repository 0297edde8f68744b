"""The rules for changes of chats, lines and messages, which apply to all layers."""

from copy import deepcopy

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S
from tests.oracle.answers import ANSWERS
from tests.oracle.driver import Chat, Checkpoint, Driver
from tests.oracle.reference.calls import bind_text
from tests.oracle.reference.lines import Line
from tests.oracle.reference.reimport import Wanted
from tests.oracle.reference.sessions import is_empty
from tests.oracle.service import Snapshot

MAX_CHATS = 3
MAX_ROUNDS = 12
"""The number of rounds within which all work has to be done."""

answers = st.sampled_from(["well", "well", *ANSWERS])
waits = st.sampled_from([1, 3, 3, 40, 400, 4_000])
picks = st.integers(0, 99)
kinds = st.sampled_from(
    ["user", "assistant"] * 4 + ["narrator", "system", "thought", "blank", "call", "result", "result"]
)
silences = st.sampled_from([1, 1, 1, 400, 4_000])
kind_lists = st.lists(kinds, min_size=1, max_size=7)


class ChatMachine(Driver):
    """A state machine that posts, changes and deletes messages, and copies and switches lines.

    The same seed must give the same steps. So neither the ids that the service makes nor how much its work has made so
    far decides which rules are possible: a rule that finds nothing to change changes nothing.
    """

    def begin_on(self, line: Line, opening: list[list[str]], *, made: bool, frozen: bool) -> None:
        """Begin with one chat with the line `line` and some messages.

        With `made`, the work is run after each post; with `frozen`, there is a checkpoint at the end.
        """
        line.active_at = self.service.clock()
        self.chats = [Chat("c", line)]
        self.set_current_line(line, line.id)
        for kinds in opening:
            self.post_kinds(kinds, [], True, 1)
            self.service_matches_reference()
            if made:
                self.work("well", 3, False)
        if frozen:
            self.checkpoint()

    def teardown(self) -> None:
        try:
            if self.last_step_passed:
                self.settle()
                for chat in self.chats:
                    self.check_other_lines(chat)
        finally:
            for chat in self.chats:
                self.request("DELETE", chat.path, 204)

    def settle(self) -> None:
        """Let time pass until nothing is due, with a model that answers well, and check the result."""
        raise NotImplementedError

    # --- messages ---

    @rule(
        kinds=kind_lists,
        retried=st.lists(picks, max_size=2),
        named=st.booleans(),
        silence_s=silences,
    )
    def post_kinds(self, kinds: list[str], retried: list[int], named: bool, silence_s: float) -> None:
        """Post messages of these kinds after some that were posted before; without `named`, the new ones have no id."""
        self.service.clock.step(silence_s)
        again = {
            message.id: message
            for message in (self.chat.posted[pick % len(self.chat.posted)] for pick in retried if self.chat.posted)
        }
        given = [*(deepcopy(message) for message in again.values()), *self.new_messages(kinds)]
        self.post_messages(given, {message.id for message in given[len(again) :]} if not named else set())

    @rule(turns=st.integers(1, 3), silence_s=silences)
    def post_turns(self, turns: int, silence_s: float) -> None:
        self.service.clock.step(silence_s)
        self.post_messages(self.new_messages(["user", "assistant"] * turns), set())

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks, how=st.sampled_from(["new", "new", "undo", "undo", "blank"]))
    def edit(self, pick: int, how: str) -> None:
        message = self.pick_message(pick)
        text = self.new_text() if how == "new" else "  "
        if how == "undo":
            text = next(
                (before for swipe, before in reversed(message.revisions) if swipe == message.selected), message.text
            )
        if self.change_message("PATCH", message, "", 200, {"content": text}):
            former = message.text
            with self.line.changing():
                message.set_text(text)
            if text != former:
                bind_text(self.line, message, text)
            revisions = self.request("GET", f"{self.chat.path}/messages/{message.id}/revisions", 200)["items"]
            assert [(item["swipe"], item["content"]) for item in reversed(revisions)] == message.revisions
            self.check_id_conflict(message)

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks)
    def swipe(self, pick: int) -> None:
        message, text = self.pick_message(pick), self.new_text()
        if self.change_message("POST", message, "/swipes", 201, {"content": text}):
            with self.line.changing():
                message.texts.append(text)
                message.selected = len(message.texts) - 1
            bind_text(self.line, message, text)

    @precondition(lambda self: any(len(message.texts) > 1 for message in self.line.messages))
    @rule(pick=picks, index=picks)
    def select(self, pick: int, index: int) -> None:
        swiped = [message for message in self.line.messages if len(message.texts) > 1]
        message = swiped[pick % len(swiped)]
        index %= len(message.texts)
        if self.change_message("PUT", message, "/swipes/selected", 200, {"index": index}):
            with self.line.changing():
                message.selected = index

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        message = self.pick_message(pick)
        if self.change_message("DELETE", message, "", 204):
            with self.line.changing():
                message.deleted = True

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks, name=st.sampled_from(["excluded", "pinned", "hidden"]), value=st.booleans())
    def mark(self, pick: int, name: str, value: bool) -> None:
        message = self.pick_message(pick)
        if self.change_message("PATCH", message, "", 200, {name: value}):
            with self.line.changing():
                if name == "hidden":
                    message.hide(value)
                else:
                    setattr(message, name, value)

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks, lengths=st.lists(st.integers(1, 4), min_size=1, max_size=2), hidden=st.booleans())
    def set_visibility(self, pick: int, lengths: list[int], hidden: bool) -> None:
        """Hide a range and show the next one, or the reverse."""
        first, ranges, changed = pick % self.line.head + 1, [], 0
        with self.line.changing():
            for index, length in enumerate(lengths):
                wanted = hidden != bool(index)
                ranges.append({"first_seq": first, "last_seq": first + length - 1, "hidden": wanted})
                for message in self.line.messages[first - 1 : first + length - 1]:
                    if not message.deleted and message.hidden_by != ("user" if wanted else None):
                        message.hide(wanted)
                        changed += 1
                first += length
        self.may_go_back = True
        answer = self.request("POST", f"{self.chat.path}/messages/visibility", 200, {"ranges": ranges})
        assert answer["changed"] == changed

    @rule(length=st.integers(0, 6))
    def truncate(self, length: int) -> None:
        from_seq = max(self.line.head - length, 0) + 1
        self.may_go_back = True
        self.request("DELETE", f"{self.chat.path}/messages", 204, from_seq=from_seq)
        self.line.truncate(from_seq)

    @precondition(lambda self: self.line.messages)
    @rule(
        how=st.sets(
            st.sampled_from(["texts", "missing", "inserted", "moved", "appended", "revived", "swipes"]), max_size=3
        ),
        pick=picks,
        other=picks,
        named=st.booleans(),
    )
    def reimport(self, how: set[str], pick: int, other: int, named: bool) -> None:
        """Import the chat again after changes of the kinds in `how`; `named` is that of `put_messages`."""
        wanted = [Wanted(message, message.text) for message in self.line.not_deleted]
        deleted = [message for message in self.line.messages if message.deleted]
        if wanted and "texts" in how:
            wanted[pick % len(wanted)].text = self.new_text()
        if wanted and "swipes" in how:
            self.add_swipes(wanted[pick % len(wanted)], other)
        if wanted and "missing" in how:
            del wanted[other % len(wanted) : other % len(wanted) + 2]
        if wanted and "moved" in how:
            wanted.insert(other % len(wanted), wanted.pop(pick % len(wanted)))
        if deleted and "revived" in how:
            message = deleted[pick % len(deleted)]
            former_index = sum(entry.message.seq < message.seq for entry in wanted)
            wanted.insert(former_index if other % 2 else other % (len(wanted) + 1), Wanted(message, message.text))
        fresh = self.new_messages(["user", "assistant"])
        if "inserted" in how:
            wanted.insert(pick % (len(wanted) + 1), Wanted(fresh[0], fresh[0].text, known=False))
        if "appended" in how:
            wanted.append(Wanted(fresh[1], fresh[1].text, known=False))
        self.put_messages(wanted, named=named)

    def add_swipes(self, entry: Wanted, other: int) -> None:
        """Send all swipes of a message with up to two new ones, and select one; only if its texts differ."""
        message = entry.message
        if len(set(message.texts)) < len(message.texts) or any(not text.strip() for text in message.texts):
            return
        entry.swipes = [*message.texts, *(self.new_text() for _ in range(other % 3))]
        entry.text = entry.swipes[-1 if other % 2 else other % len(entry.swipes)]

    # --- sessions ---

    @rule()
    def end_session(self) -> None:
        """End the open session by hand, which changes nothing if it has no messages."""
        stays = is_empty(self.line.sessions, self.line.messages)
        begun = self.request("POST", f"{self.chat.path}/sessions/break", 200 if stays else 201)
        if not stays:
            self.line.sessions.append((self.line.head + 1, "manual"))
            self.may_advance = True
        assert (begun["number"], begun["first_seq"]) == (len(self.line.sessions), self.line.sessions[-1][0])

    # --- lines ---

    @rule()
    def checkpoint(self) -> None:
        name = f"checkpoint {next(self.counter)}"
        frozen = self.request("POST", f"{self.chat.path}/checkpoints", 201, {"name": name})
        line = self.line.copy()
        line.id = frozen["line"]
        self.chat.checkpoints[name] = Checkpoint(line, self.service.contexts(self.chat.id))

    @precondition(lambda self: self.chat.checkpoints)
    @rule(pick=picks, forget=st.booleans())
    def restore(self, pick: int, forget: bool) -> None:
        """Restore a checkpoint; with `forget`, delete it then."""
        name = sorted(self.chat.checkpoints)[pick % len(self.chat.checkpoints)]
        checkpoint = self.chat.checkpoints[name]
        self.record_context()
        restored = self.request("POST", f"{self.chat.path}/checkpoints/{name}/restore", 201)
        self.set_current_line(checkpoint.line.copy(), restored["line"])
        assert self.service.contexts(self.chat.id) == checkpoint.contexts
        if forget:
            self.request("DELETE", f"{self.chat.path}/checkpoints/{name}", 204)
            del self.chat.checkpoints[name]

    @precondition(lambda self: self.chat.abandoned)
    @rule(pick=picks)
    def switch(self, pick: int) -> None:
        """Switch to an abandoned line, whose context must not have changed."""
        wanted = list(self.chat.abandoned)[pick % len(self.chat.abandoned)]
        self.record_context()
        self.request("POST", f"{self.chat.path}/lines/{wanted}/switch", 200)
        self.set_current_line(self.chat.lines[wanted], wanted)
        assert self.service.contexts(self.chat.id) == self.chat.abandoned.pop(wanted)

    @precondition(lambda self: len(self.chats) < MAX_CHATS)
    @rule(pick=picks, whole=st.booleans(), go=st.booleans())
    def fork(self, pick: int, whole: bool, go: bool) -> None:
        """Fork the chat, whole or up to a message; with `go`, the next steps change the fork."""
        chat_id, at_seq = f"fork-{len(self.chats)}", pick % (self.line.head + 2)
        present = any(message.seq == at_seq for message in self.line.not_deleted)
        body = {"chat_id": chat_id} if whole else {"chat_id": chat_id, "at_seq": at_seq}
        made = self.request("POST", f"{self.chat.path}/fork", 201 if whole or present else 422, body)
        if not whole and not present:
            return
        line = self.line.copy(None if whole else at_seq)
        line.id, line.active_at = made["line"], self.service.clock()
        forked = Chat(chat_id, line, {line.id: line}, posted=deepcopy(self.chat.posted))
        self.chats.append(forked)
        self.note_fork(forked)
        if whole:
            contexts = self.service.contexts(forked.id)
            expected = self.service.contexts(self.chat.id)
            assert {name: context | {"chat_id": self.chat.id} for name, context in contexts.items()} == expected
        self.may_go_back = True
        self.check(forked, may_advance=False)
        if go:
            self.chat_index = len(self.chats) - 1

    def note_fork(self, forked: Chat) -> None:
        """Apply to the reference what a fork of the current chat copies besides the line."""

    @precondition(lambda self: len(self.chats) > 1)
    @rule(pick=picks)
    def change_chat(self, pick: int) -> None:
        """Let the next steps change another chat."""
        self.chat_index = pick % len(self.chats)

    # --- time and work ---

    @rule(answer=answers, wait_s=waits, patient=st.booleans())
    def work(self, answer: str, wait_s: float, patient: bool) -> None:
        """Run the work that is due: once, or with `patient` until it succeeds or fails for good."""
        for _ in range(MAX_ATTEMPTS if patient else 1):
            self.drain(answer, max(RETRY_DELAYS_S) if patient else wait_s)
        for chat in self.chats:
            self.learn_results(chat, answer, self.service.snapshot(chat.id))

    def settle_chats(self) -> list[tuple[Chat, Snapshot]]:
        """Let time pass until nothing is due, retry what has failed for good, and return each chat's snapshot."""
        for _ in range(MAX_ROUNDS):
            found = [self.service.snapshot(chat.id) for chat in self.chats]
            work = [row for snapshot in found for row in snapshot.work.values()]
            if not work:
                break
            for row in work:
                if row["failed"]:
                    self.request("POST", f"/work/{row['id']}/retry", 202)
            self.drain("well", 4_000)
        for chat, snapshot in zip(self.chats, found, strict=True):
            self.learn_results(chat, "well", snapshot)
        return list(zip(self.chats, found, strict=True))

    # --- after each step ---

    @invariant()
    def service_matches_reference(self) -> None:
        self.check(self.chat, may_advance=self.may_advance)
        self.reset_step()
        self.last_step_passed = True
