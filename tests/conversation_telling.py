"""Everything that can happen to a conversation that narratives remember, as the rules of a state machine."""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests import conversation_checks
from tests import conversation_telling_checks as checks
from tests.conversation_answers import ANSWERS
from tests.conversation_changes import Changing, answers, chapters, picks, waits
from tests.conversation_model import NAMES
from tests.conversation_service import Seen
from tests.conversation_tables import Tables
from tests.conversation_teller import Chat
from tests.conversation_telling_model import TellingLine, TellingRules

edge_kinds = st.sampled_from(["folds", "folds", "scenes", "scenes", "every_message", "every_8"])


@st.composite
def all_rules(draw: st.DrawFn) -> TellingRules:
    """Settings under which much is told within a few messages."""
    keep, grow = draw(st.integers(2, 4)), draw(st.integers(0, 3))
    most = keep + grow + draw(st.sampled_from([2, 6, 32]))
    return TellingRules(
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


class Telling(Changing):
    """A chat with a summary, a diary and scenes.

    Attributes:
        thorough: Whether every model so far has told all that there was.

    """

    def __init__(self) -> None:
        super().__init__()
        self.thorough = True

    @initialize(
        rules=all_rules(),
        opening=st.lists(chapters, min_size=1, max_size=4),
        made=st.booleans(),
        frozen=st.booleans(),
    )
    def begin(self, rules: TellingRules, opening: list[list[str]], made: bool, frozen: bool) -> None:
        characters = [{"name": NAMES["assistant"], "persona": "A lighthouse keeper."}]
        body = {"settings": rules.to_settings(), "characters": characters}
        self.begin_at(TellingLine(self.ask("PUT", "/chats/c", 201, body)["line"], rules))
        for chapter in opening:
            self.tell(chapter, [], True, 1)
            self.the_service_is_as_the_model()
            if made:
                self.work("well", 3, False)
        if frozen:
            self.checkpoint()

    # --- what is held against what ---

    def telling(self, chat: Chat | None = None) -> TellingLine:
        """The current line."""
        line = (chat or self.chat).line
        assert isinstance(line, TellingLine)
        return line

    @property
    def tables(self) -> Tables:
        """The tables of the current line as they stand."""
        return self.service.tables(self.chat.id, self.line.id)

    def check(self, chat: Chat, *, forward: bool, seen: Seen | None = None) -> None:
        line, seen = self.telling(chat), seen or self.service.look(chat.id)
        assert seen.row["line"] == line.id
        for said, row in zip(line.messages, seen.messages, strict=True):
            said.out_of_sight = row["hidden_by"] == "scenes"
            assert row["kept_shown"] == said.kept_shown
        conversation_checks.check_messages(line, seen)
        conversation_checks.check_counters(line, seen)
        checks.check_anchor(line, seen)
        tables = self.service.tables(chat.id, line.id)
        checks.check_telling(line, tables, seen, thorough=self.thorough)
        errors = [row["error"] for row in seen.work.values() if "unexpected" in (row["error"] or "")]
        assert not errors, errors
        line.anchor = seen.anchor

    def drain(self, answer: str, wait_s: float) -> None:
        self.thorough = self.thorough and answer != "nothing"
        self.sound = False
        self.service.model.otherwise = ANSWERS[answer]
        self.service.clock.step(wait_s)
        self.service.do(self.service.sweep.drain())

    def learn(self, chat: Chat, answer: str, seen: Seen) -> None:
        self.check(chat, forward=True, seen=seen)

    # --- the summary ---

    @rule()
    def write_summary(self) -> None:
        self.ask("PUT", f"{self.chat.path}/summary", 200, {"text": self.written()})

    @rule(replace=st.booleans())
    def regenerate_summary(self, replace: bool) -> None:
        body = {"replace_edited": replace}
        self.service.ask_either("POST", f"{self.chat.path}/summary/regenerate", {202, 409}, body)

    # --- the diary ---

    @rule(by_tool=st.booleans(), lines=st.integers(1, 4))
    def write_down(self, by_tool: bool, lines: int) -> None:
        body = {"content": "\n".join(self.written() for _ in range(lines))}
        path, status = ("tools/save_memory", 200) if by_tool else ("diary", 201)
        self.ask("POST", f"{self.chat.path}/{path}", status, body)

    @precondition(lambda self: self.entry_ids())
    @rule(pick=picks, delete=st.booleans())
    def change_entry(self, pick: int, delete: bool) -> None:
        ids = self.entry_ids()
        path = f"{self.chat.path}/diary/{ids[pick % len(ids)]}"
        if delete:
            self.ask("DELETE", path, 204)
        else:
            self.ask("PATCH", path, 200, {"content": self.written()})

    def entry_ids(self) -> list[str]:
        """The entries of the diary that is written."""
        return [str(entry.entry_id) for entry in self.tables.entries if entry.content and not entry.deleted]

    # --- scenes ---

    @precondition(lambda self: self.line.messages)
    @rule(pick=picks)
    def set_or_lift_break(self, pick: int) -> None:
        said = self.pick(pick)
        path = f"{self.chat.path}/scenes/breaks/{said.seq}"
        if any(scene.last_seq == said.seq for scene in self.tables.scenes):
            self.ask("DELETE", path, 204)
        else:
            self.ask("PUT", path, 422 if said.deleted else 201)

    @rule()
    def look_for_break(self) -> None:
        self.ask("POST", f"{self.chat.path}/scenes/detect", 202)

    @precondition(lambda self: self.scene_ids())
    @rule(pick=picks, name=st.sampled_from(["recap", "title"]))
    def edit_scene(self, pick: int, name: str) -> None:
        ids = self.scene_ids()
        self.ask("PATCH", f"{self.chat.path}/scenes/{ids[pick % len(ids)]}", 200, {name: self.written()})

    @precondition(lambda self: self.scene_ids())
    @rule(pick=picks, replace=st.booleans())
    def regenerate_scene(self, pick: int, replace: bool) -> None:
        ids = self.scene_ids()
        path = f"{self.chat.path}/scenes/{ids[pick % len(ids)]}/regenerate"
        self.service.ask_either("POST", path, {202, 409}, {"replace_edited": replace})

    def scene_ids(self) -> list[str]:
        """The closed scenes."""
        return [str(scene.scene_id) for scene in self.tables.scenes]

    # --- the running recap ---

    @rule()
    def write_recap(self) -> None:
        self.ask("PUT", f"{self.chat.path}/recap", 200, {"text": self.written()})

    @precondition(lambda self: self.tables.recaps)
    @rule(pick=picks)
    def choose_recap(self, pick: int) -> None:
        versions = self.tables.recaps
        self.telling().chosen = True
        self.ask("PUT", f"{self.chat.path}/recap/current", 200, {"version": versions[pick % len(versions)]})

    @precondition(lambda self: self.tables.recaps)
    @rule(pick=picks)
    def delete_recap(self, pick: int) -> None:
        versions = self.tables.recaps
        self.telling().chosen = True
        self.ask("DELETE", f"{self.chat.path}/recap/versions/{versions[pick % len(versions)]}", 204)

    @rule()
    def rebuild_recap(self) -> None:
        line = self.telling()
        line.chosen |= line.rules.scenes
        self.ask("POST", f"{self.chat.path}/recap/rebuild", 202 if line.rules.scenes else 409)

    # --- settings, time and work ---

    @rule(changed=changes)
    def set(self, changed: dict[str, object]) -> None:
        line = self.telling()
        line.set(**changed)
        self.ask("PUT", self.chat.path, 200, {"settings": line.rules.to_settings()})

    @rule(answer=answers, wait_s=waits, patient=st.booleans())
    def work(self, answer: str, wait_s: float, patient: bool) -> None:
        """Try what is ripe, once or until it is made or given up."""
        self.try_work(answer, wait_s, patient=patient)

    @rule()
    def settle(self) -> None:
        for chat, seen in self.settle_all():
            tables = self.service.tables(chat.id, chat.line.id)
            line = self.telling(chat)
            checks.check_settled(line, tables, seen)
            items = self.ask("GET", f"{chat.path}/inclusion", 200, limit=500)["items"]
            checks.check_inclusion(line, tables, seen, items)
