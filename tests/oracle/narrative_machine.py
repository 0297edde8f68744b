"""The state machine for chats with a summary, a diary, scenes and a running recap."""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.oracle import checks, narrative_checks
from tests.oracle.answers import REFUSED, UNCERTAIN
from tests.oracle.chat_machine import kind_lists, picks
from tests.oracle.driver import Chat
from tests.oracle.reference.lines import NAMES
from tests.oracle.reference.narratives import NarrativeLine, NarrativeSettings
from tests.oracle.rename_rules import RenameRules
from tests.oracle.service import Snapshot
from tests.oracle.tool_rules import ToolRules

edge_kinds = st.sampled_from(["folds", "folds", "scenes", "scenes", "every_message", "every_8"])


@st.composite
def draw_settings(draw: st.DrawFn) -> NarrativeSettings:
    """Draw settings under which the layers generate texts within a few messages."""
    keep, grow = draw(st.integers(2, 4)), draw(st.integers(0, 3))
    most = keep + grow + draw(st.sampled_from([2, 6, 32]))
    return NarrativeSettings(
        0,
        0,
        keep,
        grow,
        most,
        draw(st.booleans()),
        edges=draw(edge_kinds),
        summary=draw(st.sampled_from([True, True, False])),
        threshold=draw(st.integers(2, 5)),
        fold_keep=draw(st.integers(1, 4)),
        diary=draw(st.sampled_from([True, True, False])),
        lines=draw(st.integers(3, 12)),
        auto_write=draw(st.sampled_from([None, 1, 2])),
        scenes=draw(st.sampled_from([True, True, False])),
        detect=draw(st.booleans()),
        offset=draw(st.integers(0, 2)),
        min_scene=draw(st.integers(1, 3)),
        keep_scenes=draw(st.integers(0, 2)),
        auto_hide=draw(st.sampled_from([None, 0, 1, 2])),
        exclude_latest=draw(st.sampled_from([0, 0, 1])),
        position=draw(st.sampled_from(["before_prompt", "in_prompt", "none"])),
    )


changes = st.one_of(
    *(
        st.fixed_dictionaries({name: values})
        for name, values in {
            "summary": st.booleans(),
            "diary": st.booleans(),
            "scenes": st.booleans(),
            "edges": edge_kinds,
            "threshold": st.integers(2, 5),
            "lines": st.integers(3, 12),
            "auto_write": st.sampled_from([None, 1, 2]),
            "detect": st.booleans(),
            "min_scene": st.integers(1, 3),
            "keep_scenes": st.integers(0, 2),
            "auto_hide": st.sampled_from([None, 0, 1, 2]),
            "exclude_latest": st.integers(0, 2),
            "include_system": st.booleans(),
        }.items()
    )
)


class NarrativeMachine(ToolRules, RenameRules):
    """Chats that narratives summarise, with the rules that change narratives.

    Attributes:
        complete: Whether every answer of the model so far has repeated all words of its prompt.

    """

    def __init__(self) -> None:
        super().__init__()
        self.complete = True

    @initialize(
        settings=draw_settings(),
        opening=st.lists(kind_lists, min_size=1, max_size=4),
        made=st.booleans(),
        frozen=st.booleans(),
    )
    def begin(self, settings: NarrativeSettings, opening: list[list[str]], made: bool, frozen: bool) -> None:
        characters = [{"name": NAMES["assistant"], "persona": "A lighthouse keeper."}]
        body = {"settings": settings.to_json(), "characters": characters}
        line = self.request("PUT", "/chats/c", 201, body)["line"]
        reference = NarrativeLine(line, settings, names=[NAMES["assistant"]])
        self.begin_on(reference, opening, made=made, frozen=frozen)

    # --- the comparison ---

    def narrative_line(self, chat: Chat | None = None) -> NarrativeLine:
        """Return the current line of a chat, by default of the current chat."""
        line = (chat or self.chat).line
        assert isinstance(line, NarrativeLine)
        return line

    def check(self, chat: Chat, *, may_advance: bool, snapshot: Snapshot | None = None) -> None:
        line, snapshot = self.narrative_line(chat), snapshot or self.service.snapshot(chat.id)
        assert snapshot.row["line"] == line.id
        for message, row in zip(line.messages, snapshot.messages, strict=True):
            message.hidden_by_scenes = row["hidden_by"] == "scenes"
            assert row["visibility_pinned"] == message.visibility_pinned
        checks.check_messages(line, snapshot)
        checks.check_counters(line, snapshot)
        narrative_checks.check_anchor(line, snapshot)
        tables = self.service.tables(chat.id, line.id)
        narrative_checks.check_narratives(line, tables, snapshot, complete=self.complete)
        self.check_calls(chat, tables)
        errors = [row["error"] for row in snapshot.work.values() if "unexpected" in (row["error"] or "")]
        assert not errors, errors
        line.anchor = snapshot.anchor

    def drain(self, answer: str, wait_s: float) -> None:
        self.complete = self.complete and answer not in ("nothing", *REFUSED, *UNCERTAIN)
        super().drain(answer, wait_s)

    def learn_results(self, chat: Chat, answer: str, snapshot: Snapshot) -> None:
        line = self.narrative_line(chat)
        if answer in (*REFUSED, *UNCERTAIN):
            stale = narrative_checks.stale_entries(self.service.tables(chat.id, line.id))
            ended = [entry for entry in stale if f"entry:{entry.entry_id}" not in snapshot.work]
            line.unwritten |= {(entry.entry_id, entry.current_hash) for entry in ended}
        self.check(chat, may_advance=True, snapshot=snapshot)

    # --- the summary ---

    @rule(keep=st.booleans())
    def write_summary(self, keep: bool) -> None:
        text = self.new_person_text()
        written = self.request("PUT", f"{self.chat.path}/summary", 200, {"text": text, "keep": keep})
        assert (written["kept_text"], written["text"]) == ((text, "") if keep else ("", text))
        assert written["in_prompt"] or not keep

    @rule(pick=picks)
    def choose_summary(self, pick: int) -> None:
        if not (versions := self.tables.summary_versions):
            return
        chosen = {"version": versions[pick % len(versions)]}
        assert self.request("PUT", f"{self.chat.path}/summary/current", 200, chosen)["current"]
        assert self.tables.summary_versions == versions

    @rule(replace=st.booleans())
    def regenerate_summary(self, replace: bool) -> None:
        body = {"replace_edited": replace}
        self.service.request_either("POST", f"{self.chat.path}/summary/regenerate", {202, 409}, body)

    # --- the diary ---

    @rule(lines=st.integers(1, 4))
    def add_entry(self, lines: int) -> None:
        body = {"content": "\n".join(self.new_person_text() for _ in range(lines))}
        self.request("POST", f"{self.chat.path}/diary", 201, body)

    # --- scenes ---

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks)
    def set_or_remove_break(self, pick: int) -> None:
        message = self.pick_message(pick)
        path = f"{self.chat.path}/scenes/breaks/{message.seq}"
        if any(scene.last_seq == message.seq for scene in self.tables.scenes):
            self.request("DELETE", path, 204)
        else:
            self.request("PUT", path, 422 if message.deleted else 201)

    @rule()
    def detect_break(self) -> None:
        self.request("POST", f"{self.chat.path}/scenes/detect", 202)

    @rule(pick=picks, name=st.sampled_from(["recap", "title"]))
    def edit_scene(self, pick: int, name: str) -> None:
        if not (ids := self.scene_ids()):
            return
        self.request("PATCH", f"{self.chat.path}/scenes/{ids[pick % len(ids)]}", 200, {name: self.new_person_text()})

    @rule(pick=picks, replace=st.booleans())
    def regenerate_scene(self, pick: int, replace: bool) -> None:
        if not (ids := self.scene_ids()):
            return
        path = f"{self.chat.path}/scenes/{ids[pick % len(ids)]}/regenerate"
        self.service.request_either("POST", path, {202, 409}, {"replace_edited": replace})

    def scene_ids(self) -> list[str]:
        """Return the ids of the closed scenes."""
        return [str(scene.scene_id) for scene in self.tables.scenes]

    # --- the running recap ---

    @rule()
    def write_recap(self) -> None:
        self.request("PUT", f"{self.chat.path}/recap", 200, {"text": self.new_person_text()})

    @rule(pick=picks)
    def choose_recap(self, pick: int) -> None:
        if not (versions := self.tables.recap_versions):
            return
        self.narrative_line().recap_chosen = True
        self.request("PUT", f"{self.chat.path}/recap/current", 200, {"version": versions[pick % len(versions)]})

    @rule(pick=picks)
    def delete_recap(self, pick: int) -> None:
        if not (versions := self.tables.recap_versions):
            return
        self.narrative_line().recap_chosen = True
        self.request("DELETE", f"{self.chat.path}/recap/versions/{versions[pick % len(versions)]}", 204)

    @rule()
    def rebuild_recap(self) -> None:
        line = self.narrative_line()
        line.recap_chosen |= line.settings.scenes
        self.request("POST", f"{self.chat.path}/recap/rebuild", 202 if line.settings.scenes else 409)

    # --- settings, time and work ---

    @rule(changed=changes)
    def change_settings(self, changed: dict[str, object]) -> None:
        line = self.narrative_line()
        line.change_settings(**changed)
        self.request("PUT", self.chat.path, 200, {"settings": line.settings.to_json()})

    @rule()
    def settle(self) -> None:
        for chat, snapshot in self.settle_chats():
            tables = self.service.tables(chat.id, chat.line.id)
            line = self.narrative_line(chat)
            narrative_checks.check_settled(line, tables, snapshot)
            items = self.request("GET", f"{chat.path}/inclusion", 200, limit=500)["items"]
            narrative_checks.check_inclusion(line, tables, snapshot, items)
