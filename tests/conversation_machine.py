"""Everything that can happen to a conversation that memos remember, as the rules of a state machine."""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests import conversation_checks as checks
from tests.conversation_changes import Changing, answers, chapters, picks, waits
from tests.conversation_model import Line, Rules


@st.composite
def all_rules(draw: st.DrawFn) -> Rules:
    """Settings under which much happens within a few messages."""
    every, keep, grow = draw(st.integers(2, 4)), draw(st.integers(2, 4)), draw(st.integers(0, 3))
    patience = draw(st.sampled_from([2, 4, 32]))
    return Rules(every, draw(st.integers(2, 4)), keep, grow, keep + grow + patience, draw(st.booleans()))


class Conversation(Changing):
    """A chat whose memories are memos, as all presets have them but those of narratives."""

    @initialize(
        rules=all_rules(),
        opening=st.lists(chapters, min_size=1, max_size=4),
        made=st.booleans(),
        frozen=st.booleans(),
    )
    def begin(self, rules: Rules, opening: list[list[str]], made: bool, frozen: bool) -> None:
        settings = {
            "memos": {"every_messages": rules.every, "window": rules.window, "include_system": rules.include_system},
            "history": {"keep_messages": rules.keep, "grow_messages": rules.grow, "max_messages": rules.most},
        }
        line = self.ask("PUT", "/chats/c", 201, {"settings": settings})["line"]
        self.begin_at(Line(line, rules))
        for chapter in opening:
            self.tell(chapter, [], True, 1)
            self.the_service_is_as_the_model()
            if made:
                self.work("well", 3, False)
        if frozen:
            self.checkpoint()

    # --- the memo book ---

    @rule(pick=picks)
    def write(self, pick: int) -> None:
        after_seq, text = pick % (self.line.head + 1), self.written()
        body = {"text": text} if pick > 80 else {"text": text, "after_seq": after_seq}
        memo = self.ask("POST", f"{self.chat.path}/memos", 201, body)
        self.forward = True
        self.line.write(memo["id"], text, self.line.head if pick > 80 else after_seq)

    @precondition(lambda self: self.line.book)
    @rule(pick=picks)
    def revise(self, pick: int) -> None:
        memo, text = self.pick_memo(pick), self.written()
        self.ask("PATCH", f"{self.chat.path}/memos/{memo.id}", 200, {"text": text})
        self.forward = True
        self.line.edit_memo(memo, text)

    @precondition(lambda self: self.line.book)
    @rule(pick=picks, pinned=st.booleans())
    def pin_memo(self, pick: int, pinned: bool) -> None:
        memo = self.pick_memo(pick)
        self.ask("PATCH", f"{self.chat.path}/memos/{memo.id}", 200, {"pinned": pinned})
        self.forward = True
        memo.pinned = pinned

    @precondition(lambda self: self.line.book)
    @rule(pick=picks)
    def delete_memo(self, pick: int) -> None:
        memo = self.pick_memo(pick)
        self.ask("DELETE", f"{self.chat.path}/memos/{memo.id}", 204)
        self.forward = True
        self.line.delete_memo(memo)

    @precondition(lambda self: self.line.batches)
    @rule(pick=picks, replace=st.booleans())
    def regenerate(self, pick: int, replace: bool) -> None:
        memo = self.line.batches[pick % len(self.line.batches)]
        refused = memo.by_person and not memo.deleted and not replace
        path = f"{self.chat.path}/memos/{memo.id}/regenerate"
        self.ask("POST", path, 409 if refused else 202, {"replace_edited": replace})
        self.forward = True
        if not refused:
            self.line.regenerate(memo)

    # --- time and work ---

    @rule(answer=answers, wait_s=waits, patient=st.booleans())
    def work(self, answer: str, wait_s: float, patient: bool) -> None:
        """Try what is ripe, once or until it is made or given up."""
        self.try_work(answer, wait_s, patient=patient)

    @rule()
    def settle(self) -> None:
        for chat, seen in self.settle_all():
            checks.check_settled(chat.line, seen)
            items = self.ask("GET", f"{chat.path}/inclusion", 200, limit=500)["items"]
            checks.check_inclusion(chat.line, seen, items)
