"""The state machine for chats with a memo book."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.oracle import checks
from tests.oracle.chat_machine import kind_lists, picks
from tests.oracle.reference.lines import NAMES, Line, Settings
from tests.oracle.rename_rules import RenameRules


@st.composite
def draw_settings(draw: st.DrawFn) -> Settings:
    """Draw settings under which batches and cuts happen within a few messages."""
    every, keep, grow = draw(st.integers(2, 4)), draw(st.integers(2, 4)), draw(st.integers(0, 3))
    patience = draw(st.sampled_from([2, 4, 32]))
    return Settings(
        every,
        draw(st.integers(2, 4)),
        keep,
        grow,
        keep + grow + patience,
        draw(st.booleans()),
        max_turns=draw(st.sampled_from([0, 0, 2, 3])),
        idle_s=draw(st.sampled_from([0, 0, 40, 400])),
    )


class MemoMachine(RenameRules):
    """Chats that memos summarise, with the rules that change memos."""

    @initialize(
        settings=draw_settings(),
        resets=st.booleans(),
        listed=st.sampled_from([True, True, False]),
        opening=st.lists(kind_lists, min_size=1, max_size=4),
        made=st.booleans(),
        frozen=st.booleans(),
    )
    def begin(
        self, settings: Settings, resets: bool, listed: bool, opening: list[list[str]], made: bool, frozen: bool
    ) -> None:
        """Begin with a chat.

        With `resets`, a session ends at the next full hour. With `listed`, the chat lists its character, which can then
        be renamed.
        """
        if resets:
            settings = replace(settings, reset_hour=(self.service.clock().hour + 1) % 24)
        names = [NAMES["assistant"]] if listed else []
        body = {"settings": settings.to_json(), "characters": [{"name": name} for name in names]}
        line = self.request("PUT", "/chats/c", 201, body)["line"]
        self.begin_on(Line(line, settings, names=names), opening, made=made, frozen=frozen)

    # --- the memo book ---

    @rule(pick=picks)
    def write_memo(self, pick: int) -> None:
        after_seq, text = pick % (self.line.head + 1), self.new_person_text()
        body = {"text": text} if pick > 80 else {"text": text, "after_seq": after_seq}
        memo = self.request("POST", f"{self.chat.path}/memos", 201, body)
        self.may_advance = True
        self.line.write_memo(memo["id"], text, self.line.head if pick > 80 else after_seq)

    @precondition(lambda self: self.line.book)
    @rule(pick=picks)
    def edit_memo(self, pick: int) -> None:
        memo, text = self.pick_memo(pick), self.new_person_text()
        self.request("PATCH", f"{self.chat.path}/memos/{memo.id}", 200, {"text": text})
        self.may_advance = True
        self.line.edit_memo(memo, text)

    @precondition(lambda self: self.line.book)
    @rule(pick=picks, pinned=st.booleans())
    def pin_memo(self, pick: int, pinned: bool) -> None:
        memo = self.pick_memo(pick)
        self.request("PATCH", f"{self.chat.path}/memos/{memo.id}", 200, {"pinned": pinned})
        self.may_advance = True
        memo.pinned = pinned

    @precondition(lambda self: self.line.book)
    @rule(pick=picks)
    def delete_memo(self, pick: int) -> None:
        memo = self.pick_memo(pick)
        self.request("DELETE", f"{self.chat.path}/memos/{memo.id}", 204)
        self.may_advance = True
        self.line.delete_memo(memo)

    @precondition(lambda self: self.line.batches)
    @rule(pick=picks, replace=st.booleans())
    def regenerate(self, pick: int, replace: bool) -> None:
        memo = self.line.batches[pick % len(self.line.batches)]
        refused = memo.by_person and not memo.deleted and not replace
        path = f"{self.chat.path}/memos/{memo.id}/regenerate"
        self.request("POST", path, 409 if refused else 202, {"replace_edited": replace})
        self.may_advance = True
        if not refused:
            self.line.regenerate(memo)

    # --- time and work ---

    @rule()
    def settle(self) -> None:
        for chat, snapshot in self.settle_chats():
            checks.check_settled(chat.line, snapshot)
            items = self.request("GET", f"{chat.path}/inclusion", 200, limit=500)["items"]
            checks.check_inclusion(chat.line, snapshot, items)
