"""The demo of each preset, on the beginning of its conversation, and the page that shows them."""

import re
from operator import attrgetter
from pathlib import Path

import pytest

from app.chats.settings import effective
from app.demo.errors import DemoError
from app.demo.presets import PRESETS, apply_preset
from app.demo.run import CONVERSATION, QUESTION
from app.registry import LAYERS
from tests.conftest import PROJECT
from tests.demo.running import run, write_beginning

PAGE = (PROJECT / "docs/presets.md").read_text("utf-8")


@pytest.fixture(scope="module")
async def diary(folder: Path) -> str:
    path = write_beginning(folder / "diary.jsonl", 44, diary={"lines": 12})
    code, out, error = await run(folder, "--preset", "diary", "--input", path)
    assert (code, error) == (0, "")
    return out


@pytest.fixture(scope="module")
async def scenes(folder: Path) -> str:
    code, out, error = await run(folder, "--preset", "scenes", "--input", write_beginning(folder / "scenes.jsonl", 51))
    assert (code, error) == (0, "")
    return out


@pytest.fixture(scope="module")
async def companion(folder: Path) -> str:
    path = write_beginning(folder / "companion.jsonl", 34)
    code, out, error = await run(folder, "--preset", "companion", "--input", path)
    assert (code, error) == (0, "")
    return out


@pytest.fixture(scope="module", params=["agent", "decay"])
async def learning(folder: Path, request: pytest.FixtureRequest) -> str:
    path = write_beginning(folder / f"{request.param}.jsonl", 34)
    code, out, error = await run(folder, "--preset", request.param, "--input", path)
    assert (code, error) == (0, "")
    return out


def segments_of(shown: str) -> list[str]:
    table = shown.partition("segment       tokens  holds\n")[2].partition("\n\n")[0]
    return [line.split()[0] for line in table.splitlines()]


def list_segments(preset: str) -> set[str]:
    """The segments of the layers that a preset switches on."""
    settings = effective({"preset": preset})
    return {segment.name for layer in LAYERS if layer.is_enabled(settings) for segment in layer.segments}


def test_the_keepers_diary_is_written_by_tool_and_folded(diary: str) -> None:
    assert "The characters write 7 diary entries as they go" in diary
    assert "Quill's diary: 7 entries" in diary
    assert "· after message 5\n      A mender came up in the rain: Nell Harrow" in diary
    folded = re.search(
        r"^— (\d) entries folded into these lines, in the prompt after the next cut, quoted, no model —$",
        diary,
        re.MULTILINE,
    )
    assert folded is not None
    assert diary.count("· after message") == 7
    assert diary.partition("— word for word in the prompt —")[2].count("· after message") == 4 > 7 - int(folded[1])


def test_the_diary_preset_shows_diary_summary_and_times(diary: str) -> None:
    assert segments_of(diary) == [
        *("system", "character", "user", "instruction", "diary", "summary", "history", "diary_recent", "(overhead)")
    ]
    assert re.search(r"  diary_recent +\d+  \d entr(y|ies) since the last cut\n", diary)
    assert "The summary of messages 1–" in diary
    assert "  ## Recent Conversation Summary\n" in diary
    assert "  [09/14 17:52] Quill: I have entered it in the log, in pencil." in diary
    assert "no memo, summary or recap covers" not in diary


def test_scenes_end_at_pauses_and_older_ones_are_hidden(scenes: str) -> None:
    assert "The scenes: 3 closed, one open" in scenes
    assert "Without a model, scenes end where the story paused longest." in scenes
    assert "   1  Sat 6 Sep 2025 · messages 1–12 · quoted, no model\n" in scenes
    assert scenes.count("It ends with a pause (no model: ") == 3
    assert "Messages 1–23 are hidden." in scenes


def test_with_scenes_the_running_recap_precedes_the_prompt(scenes: str) -> None:
    assert "The running recap of messages 1–36: version " in scenes
    assert segments_of(scenes) == ["recap", "system", "character", "user", "instruction", "history", "(overhead)"]
    assert "word for word · 24–51" in scenes
    assert "by the running recap · 1–23" in scenes


def test_a_companion_shows_memos_diary_times_and_what_it_lacks(companion: str) -> None:
    assert "memories, the strongest first" in companion
    assert "The memo book: 4 memos of 34 messages" in companion
    assert "Quill's diary: 6 entries" in companion
    known = ["system", "character", "user", "instruction", "diary", "memos", "history", "(overhead)"]
    found = segments_of(companion)
    assert [name for name in found if name in known] == known
    assert set(found) <= {*known, *list_segments("companion")}
    assert "  [09/12 19:32] Quill: At nineteen hundred hours." in companion


def test_facts_and_memories_are_learnt(learning: str) -> None:
    assert re.search(r"What was learnt: \d+ facts? and \d+ memories\n", learning)
    assert re.search(r"^ +· 0\.\d\d  (\(\w+\) )?Nell: “", learning, re.MULTILINE)
    assert re.search(r"^ +· 0\.\d\d  .*? · importance 0\.\d\d$", learning, re.MULTILINE | re.DOTALL)
    assert "quoted, no model" in learning


def test_a_character_sets_facts_and_edits_its_core_memory(learning: str) -> None:
    assert "The characters set facts 4 times and edit their core memory 3 times as they go" in learning
    assert "· winding_key: Nell wears it on a bootlace round her neck · message m034 · noted by the character" in (
        " ".join(learning.split())
    )
    assert "— persona: written by the character —\n\n      My name is Quill." in learning
    assert [name for name in segments_of(learning) if name in ("blocks", "facts")] == ["blocks", "facts"]
    assert "What recall adds to the next call: " in learning


@pytest.mark.parametrize(
    ("preset", "complaint"),
    [
        ("dairy", "there is no such preset; did you mean diary?"),
        ("Memos", "there is no such preset; did you mean memo?"),
        ("zzz", "there is no such preset; choose one of memo, diary, scenes, agent, decay, companion"),
    ],
)
def test_an_unknown_preset_is_reported_in_one_line(preset: str, complaint: str) -> None:
    with pytest.raises(DemoError, match=rf"^--preset {preset}: {re.escape(complaint)}[^\n]*$"):
        apply_preset({}, preset)


async def test_an_unknown_preset_is_refused_before_anything_starts(tmp_path: Path) -> None:
    code, out, error = await run(tmp_path, "--preset", "dairy")
    assert (code, out, error) == (1, "", "memobook: --preset dairy: there is no such preset; did you mean diary?\n")
    assert not (tmp_path / "data").exists()


def test_other_settings_of_a_conversation_stay() -> None:
    chat = {"language": "en", "settings": {"preset": "memo", "memos": {"window": 3}}}
    assert apply_preset(chat, "diary") == {"language": "en", "settings": {"preset": "diary", "memos": {"window": 3}}}
    assert apply_preset({}, "diary") == {"settings": {"preset": "diary"}}
    with pytest.raises(DemoError, match="not a JSON object"):
        apply_preset({"settings": [1]}, "diary")


def test_the_page_names_each_preset_and_its_settings() -> None:
    header, _, *rows = re.findall(r"^\|.*\|$", PAGE, re.MULTILINE)
    names = re.findall(r"`(\w+)`", header)
    assert sorted(names) == sorted(PRESETS)
    assert len(rows) >= 8
    for row in rows:
        setting, *values = (cell.strip() for cell in row.strip("|").split("|"))
        found = [attrgetter(setting.strip("`"))(effective({"preset": name})) for name in names]
        assert values == [_word(value) for value in found], setting


def _word(value: object) -> str:
    if value is None or value is False:
        return "–"
    return "on" if value is True else str(value)


def test_quotations_on_the_page_come_from_the_conversation() -> None:
    story = CONVERSATION.read_text("utf-8").replace('\\\\\\"', '"').replace('\\"', '"')
    blocks = "".join(re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    quoted = re.findall(r"“(.*?)”", blocks)
    before = r"(?:- (?:\[message\] )?)?(?:\[\d\d/\d\d \d\d:\d\d\] )?(?:\w+: )?"
    spoken = re.findall(rf"^{before}([^“”\n]{{60,}})$", blocks, re.MULTILINE)
    assert len(quoted) >= 10
    assert len(spoken) >= 7
    assert [text for text in (*quoted, *spoken) if text not in story] == []


async def test_the_companion_finds_a_flashback_by_meaning(folder: Path) -> None:
    path = write_beginning(folder / "flashback.jsonl", 90, history={"keep_messages": 8, "grow_messages": 8})
    code, out, error = await run(folder, "--preset", "companion", "--input", path, "--ask", QUESTION)
    assert (code, error) == (0, "")
    best = out.partition(f"A flashback: what recall finds for “{QUESTION}”")[2].splitlines()[3:5]
    assert re.search(r"message m041 · meaning 0\.50, neighbours", best[0])
    assert "You've never even had your feet wet." in best[1]
    assert not re.search(r"barefoot|seaside|stroll", CONVERSATION.read_text("utf-8"), re.IGNORECASE)
