"""The state machine for chats whose character writes its diary with the tool, with nothing else to remember."""

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.oracle import checks
from tests.oracle.chat_machine import kind_lists
from tests.oracle.driver import Chat
from tests.oracle.narrative_checks import check_character, check_held
from tests.oracle.reference.context_cache import cached_words, compact, expected_cache, held_diaries
from tests.oracle.reference.lines import NAMES
from tests.oracle.reference.narratives import NarrativeLine, NarrativeSettings
from tests.oracle.rename_rules import RenameRules
from tests.oracle.service import Snapshot
from tests.oracle.tool_rules import ToolRules

SETTINGS = NarrativeSettings(
    0, 0, 16, 16, 64, include_system=False, edges="every_8", summary=False, lines=500, auto_write=None, scenes=False
)
"""Under these nothing is folded, so the prompt has all valid entries, except for recent ones beyond their lines."""


class ToolMachine(ToolRules, RenameRules):
    """Chats in which only tool calls leave memories."""

    @initialize(opening=st.lists(kind_lists, min_size=1, max_size=2), frozen=st.booleans())
    def begin(self, opening: list[list[str]], frozen: bool) -> None:
        body = {"settings": SETTINGS.to_json(), "characters": [{"name": NAMES["assistant"]}]}
        line = self.request("PUT", "/chats/c", 201, body)["line"]
        reference = NarrativeLine(line, SETTINGS, names=[NAMES["assistant"]])
        self.begin_on(reference, opening, made=False, frozen=frozen)

    def check(self, chat: Chat, *, may_advance: bool, snapshot: Snapshot | None = None) -> None:
        line, snapshot = chat.line, snapshot or self.service.snapshot(chat.id)
        assert isinstance(line, NarrativeLine)
        assert snapshot.row["line"] == line.id
        checks.check_messages(line, snapshot)
        checks.check_counters(line, snapshot)
        tables = self.service.tables(chat.id, line.id)
        self.check_calls(chat, tables)
        assert compact(tables.context_cache) == expected_cache(line, tables, snapshot.anchor)
        assert all(held["after"] == 0 for held in held_diaries(tables)[1].values())
        check_character(line, tables, snapshot)
        check_held(line, tables)
        cached = cached_words(line, tables)
        assert [word for word in snapshot.words if word.startswith("p")] == [*cached["diary"], *cached["diary_recent"]]
        line.anchor = snapshot.anchor

    def learn_results(self, chat: Chat, answer: str, snapshot: Snapshot) -> None:
        self.check(chat, may_advance=True, snapshot=snapshot)

    def settle(self) -> None:
        self.settle_chats()
