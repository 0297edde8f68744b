"""What can happen to any conversation, whatever layers remember it, as the rules of a state machine."""

from copy import deepcopy

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S
from tests.conversation_model import Line
from tests.conversation_reimport import Wanted
from tests.conversation_service import Seen
from tests.conversation_teller import ANSWERS, Chat, Checkpoint, Storyteller

MAX_CHATS = 3
MAX_ROUNDS = 12
"""How often, at most, time passes until nothing is due."""

answers = st.sampled_from(["well", "well", *ANSWERS])
waits = st.sampled_from([1, 3, 3, 40, 400, 4_000])
picks = st.integers(0, 99)
kinds = st.sampled_from(
    ["user", "assistant"] * 4 + ["narrator", "system", "thought", "blank", "call", "result", "result"]
)
silences = st.sampled_from([1, 1, 400])
chapters = st.lists(kinds, min_size=1, max_size=7)


class Changing(Storyteller):
    """Chats, their lines and their forks: messages that are told, changed and taken away, lines that are copied."""

    def begin_at(self, line: Line) -> None:
        """Have the one chat there is be on a line."""
        self.chats = [Chat("c", line)]
        self.go_on(line, line.id)

    def teardown(self) -> None:
        try:
            if self.sound:
                self.settle()
                for chat in self.chats:
                    self.read_again(chat)
        finally:
            for chat in self.chats:
                self.ask("DELETE", chat.path, 204)

    def settle(self) -> None:
        """Let time pass until nothing is due, with a model that answers well."""
        raise NotImplementedError

    # --- messages ---

    @rule(
        chapter=chapters,
        retried=st.lists(picks, max_size=2),
        named=st.booleans(),
        silence_s=silences,
    )
    def tell(self, chapter: list[str], retried: list[int], named: bool, silence_s: float) -> None:
        self.service.clock.step(silence_s)
        again = {
            said.id: said for said in (self.chat.ever[pick % len(self.chat.ever)] for pick in retried if self.chat.ever)
        }
        given = [*(deepcopy(said) for said in again.values()), *self.make(chapter)]
        self.append(given, {said.id for said in given[len(again) :]} if not named else set())

    @rule(turns=st.integers(1, 3), silence_s=silences)
    def talk(self, turns: int, silence_s: float) -> None:
        self.service.clock.step(silence_s)
        self.append(self.make(["user", "assistant"] * turns), set())

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks, how=st.sampled_from(["anew", "anew", "undo", "undo", "blank"]))
    def edit(self, pick: int, how: str) -> None:
        said = self.pick(pick)
        text = self.word() if how == "anew" else "  "
        if how == "undo":
            text = next((before for swipe, before in reversed(said.revisions) if swipe == said.selected), said.text)
        if self.change("PATCH", said, "", 200, {"content": text}):
            with self.line.changing():
                said.say(text)
            revisions = self.ask("GET", f"{self.chat.path}/messages/{said.id}/revisions", 200)["items"]
            assert [(item["swipe"], item["content"]) for item in reversed(revisions)] == said.revisions
            self.clash(said)

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks)
    def swipe(self, pick: int) -> None:
        said, text = self.pick(pick), self.word()
        if self.change("POST", said, "/swipes", 201, {"content": text}):
            with self.line.changing():
                said.texts.append(text)
                said.selected = len(said.texts) - 1

    @precondition(lambda self: any(len(said.texts) > 1 for said in self.line.messages))
    @rule(pick=picks, index=picks)
    def select(self, pick: int, index: int) -> None:
        swiped = [said for said in self.line.messages if len(said.texts) > 1]
        said = swiped[pick % len(swiped)]
        index %= len(said.texts)
        if self.change("PUT", said, "/swipes/selected", 200, {"index": index}):
            with self.line.changing():
                said.selected = index

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        said = self.pick(pick)
        if self.change("DELETE", said, "", 204):
            with self.line.changing():
                said.deleted = True

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks, name=st.sampled_from(["excluded", "pinned", "hidden"]), value=st.booleans())
    def mark(self, pick: int, name: str, value: bool) -> None:
        said = self.pick(pick)
        if self.change("PATCH", said, "", 200, {name: value}):
            with self.line.changing():
                if name == "hidden":
                    said.hide(value)
                else:
                    setattr(said, name, value)

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks, lengths=st.lists(st.integers(1, 4), min_size=1, max_size=2), hidden=st.booleans())
    def look_away(self, pick: int, lengths: list[int], hidden: bool) -> None:
        """Hide a range and show the next one, or the other way round."""
        first, ranges, changed = pick % self.line.head + 1, [], 0
        with self.line.changing():
            for place, length in enumerate(lengths):
                wanted = hidden != bool(place)
                ranges.append({"first_seq": first, "last_seq": first + length - 1, "hidden": wanted})
                for said in self.line.messages[first - 1 : first + length - 1]:
                    if not said.deleted and said.hidden_by != ("user" if wanted else None):
                        said.hide(wanted)
                        changed += 1
                first += length
        self.back = True
        assert self.ask("POST", f"{self.chat.path}/messages/visibility", 200, {"ranges": ranges})["changed"] == changed

    @rule(length=st.integers(0, 6))
    def cut_off(self, length: int) -> None:
        from_seq = max(self.line.head - length, 0) + 1
        self.back = True
        self.ask("DELETE", f"{self.chat.path}/messages", 204, from_seq=from_seq)
        self.line.cut_off(from_seq)

    @precondition(lambda self: self.line.messages)
    @rule(
        how=st.sets(st.sampled_from(["texts", "missing", "inserted", "moved", "appended", "revived"]), max_size=3),
        pick=picks,
        other=picks,
        named=st.booleans(),
    )
    def put(self, how: set[str], pick: int, other: int, named: bool) -> None:
        """Import the chat again, as somebody else has changed it; without ids where the text tells as much."""
        wanted = [Wanted(said, said.text) for said in self.line.living]
        buried = [said for said in self.line.messages if said.deleted]
        if wanted and "texts" in how:
            wanted[pick % len(wanted)].text = self.word()
        if wanted and "missing" in how:
            del wanted[other % len(wanted) : other % len(wanted) + 2]
        if wanted and "moved" in how:
            wanted.insert(other % len(wanted), wanted.pop(pick % len(wanted)))
        if buried and "revived" in how:
            said = buried[pick % len(buried)]
            place = sum(entry.said.seq < said.seq for entry in wanted)
            wanted.insert(place if other % 2 else other % (len(wanted) + 1), Wanted(said, said.text))
        fresh = self.make(["user", "assistant"])
        if "inserted" in how:
            wanted.insert(pick % (len(wanted) + 1), Wanted(fresh[0], fresh[0].text, known=False))
        if "appended" in how:
            wanted.append(Wanted(fresh[1], fresh[1].text, known=False))
        self.put_list(wanted, named=named)

    # --- lines ---

    @rule()
    def checkpoint(self) -> None:
        name = f"checkpoint {next(self.counter)}"
        frozen = self.ask("POST", f"{self.chat.path}/checkpoints", 201, {"name": name})
        line = self.line.copy()
        line.id = frozen["line"]
        self.chat.checkpoints[name] = Checkpoint(line, self.service.contexts(self.chat.id))

    @precondition(lambda self: self.chat.checkpoints)
    @rule(pick=picks, forget=st.booleans())
    def restore(self, pick: int, forget: bool) -> None:
        """Go on from a checkpoint, and delete it or not."""
        name = sorted(self.chat.checkpoints)[pick % len(self.chat.checkpoints)]
        checkpoint = self.chat.checkpoints[name]
        self.leave()
        restored = self.ask("POST", f"{self.chat.path}/checkpoints/{name}/restore", 201)
        self.go_on(checkpoint.line.copy(), restored["line"])
        assert self.service.contexts(self.chat.id) == checkpoint.contexts
        if forget:
            self.ask("DELETE", f"{self.chat.path}/checkpoints/{name}", 204)
            del self.chat.checkpoints[name]

    @precondition(lambda self: self.chat.left)
    @rule(pick=picks)
    def switch(self, pick: int) -> None:
        """Go on with a line that was abandoned, as it was left."""
        wanted = sorted(self.chat.left)[pick % len(self.chat.left)]
        self.leave()
        self.ask("POST", f"{self.chat.path}/lines/{wanted}/switch", 200)
        self.go_on(self.chat.lines[wanted], wanted)
        assert self.service.contexts(self.chat.id) == self.chat.left.pop(wanted)

    @precondition(lambda self: len(self.chats) < MAX_CHATS)
    @rule(pick=picks, whole=st.booleans(), go=st.booleans())
    def fork(self, pick: int, whole: bool, go: bool) -> None:
        """Make another chat of this one, whole or up to a message, and go on in it or not."""
        chat_id, at_seq = f"fork-{len(self.chats)}", pick % (self.line.head + 2)
        there = any(said.seq == at_seq for said in self.line.living)
        body = {"chat_id": chat_id} if whole else {"chat_id": chat_id, "at_seq": at_seq}
        made = self.ask("POST", f"{self.chat.path}/fork", 201 if whole or there else 422, body)
        if not whole and not there:
            return
        line = self.line.copy(None if whole else at_seq)
        line.id = made["line"]
        forked = Chat(chat_id, line, {line.id: line}, ever=deepcopy(self.chat.ever))
        self.chats.append(forked)
        if whole:
            for told, expected in zip(
                *(self.service.contexts(c.id).values() for c in (forked, self.chat)), strict=True
            ):
                assert told | {"chat_id": self.chat.id} == expected
        self.back = True
        self.check(forked, forward=False)
        if go:
            self.at = len(self.chats) - 1

    @precondition(lambda self: len(self.chats) > 1)
    @rule(pick=picks)
    def turn_to(self, pick: int) -> None:
        """Go on in another chat."""
        self.at = pick % len(self.chats)

    # --- time and work ---

    def try_work(self, answer: str, wait_s: float, *, patient: bool) -> None:
        """Try what is ripe, once or until it is made or given up."""
        for _ in range(MAX_ATTEMPTS if patient else 1):
            self.drain(answer, max(RETRY_DELAYS_S) if patient else wait_s)
        for chat in self.chats:
            self.learn(chat, answer, self.service.look(chat.id))

    def settle_all(self) -> list[tuple[Chat, Seen]]:
        """Let time pass until nothing is due; what has failed for good is tried again. Every chat as it is then."""
        for _ in range(MAX_ROUNDS):
            found = [self.service.look(chat.id) for chat in self.chats]
            work = [row for seen in found for row in seen.work.values()]
            if not work:
                break
            for row in work:
                if row["failed"]:
                    self.ask("POST", f"/work/{row['id']}/retry", 202)
            self.drain("well", 4_000)
        for chat, seen in zip(self.chats, found, strict=True):
            self.learn(chat, "well", seen)
        return list(zip(self.chats, found, strict=True))

    # --- what is true after every step ---

    @invariant()
    def the_service_is_as_the_model(self) -> None:
        self.check(self.chat, forward=self.forward)
        self.forget_step()
        self.sound = True
