"""The demo as people start it, on the beginning of its own conversation."""

import re
from pathlib import Path

import pytest

from tests.commands.here import outcome_here
from tests.demo.running import run, write_beginning
from tests.local.conftest import processes_of

MESSAGES = 42


@pytest.fixture(scope="module")
async def shown(folder: Path) -> str:
    """What the first run says."""
    code, out, error = await run(folder, "--input", write_beginning(folder / "short.jsonl", MESSAGES))
    assert (code, error) == (0, "")
    return out


def test_the_demo_reports_its_progress(shown: str) -> None:
    told = [int(found) for found in re.findall(r"^ +(\d+) messages · the context has [\d,]+ tokens$", shown, re.M)]
    assert len(told) >= 5
    assert told == sorted(told)
    assert told[-1] == MESSAGES


def test_the_memo_book_shows_each_memos_range_and_origin(shown: str) -> None:
    assert "The memo book: 5 memos of 42 messages" in shown
    assert "   1  Sat 6 Sep 2025 · messages 1–8 · quoted, no model\n      · " in shown
    assert len(re.findall(r"quoted, no model", shown)) == 5


def test_memos_are_shown_or_wait_for_a_cut_that_is_not_forced(shown: str) -> None:
    book = shown.partition("The context of")[0]
    assert book.index("— in the prompt —") < book.index("— waiting: ")
    assert "no memo" not in book
    assert "no memo, summary or recap covers" not in shown


def test_the_output_names_the_missing_model_and_each_status(shown: str) -> None:
    assert "No model is configured (MEMOBOOK_LLM_BASE_URL)" in shown
    standing = shown.partition("known to the model\n")[2].partition("\n\n")[0]
    counts = [int(line.split()[0]) for line in standing.splitlines()]
    assert (len(counts), sum(counts)) == (2, MESSAGES)
    assert re.search(r"word for word · \d+–42$", standing, re.MULTILINE)
    assert re.search(r"by a memo · 1–\d+$", standing, re.MULTILINE)


def test_without_a_diary_in_the_preset_none_is_shown(shown: str) -> None:
    assert "diary" not in shown


def test_the_context_has_its_tokens_by_segment(shown: str) -> None:
    table = shown.partition("segment       tokens  holds\n")[2].partition("\n\n")[0]
    rows = {row[0]: int(row[1].replace(",", "")) for row in (line.split() for line in table.splitlines())}
    assert list(rows) == ["system", "character", "user", "instruction", "memos", "history", "(overhead)"]
    total = re.search(r"The context of the next call: ([\d,]+) of", shown)
    assert total is not None
    assert sum(rows.values()) == int(total[1].replace(",", ""))


def test_the_prompt_cache_saves_tokens_in_a_continuing_chat(shown: str) -> None:
    row = re.search(r"^  these contexts, cached +[\d,]+ +(\d+)%", shown, re.M)
    assert row is not None
    assert 10 <= int(row[1]) < 60


async def test_a_second_run_on_the_same_data_plays_a_chat_of_its_own(folder: Path, shown: str) -> None:
    (folder / "tavern.jsonl").write_text(
        '{"user_name": "unused", "character_name": "unused", "chat_metadata": {}}\n'
        '{"name": "Quill", "is_user": false, "mes": "You are late."}\n'
        '{"name": "Nell", "is_user": true, "is_system": true, "mes": "Never mind the hat."}\n'
        '{"name": "Nell", "is_user": true, "mes": "It is raining."}\n'
    )
    code, out, error = await run(folder, "--input", str(folder / "tavern.jsonl"))
    assert (code, error) == (0, "")
    assert "into the chat demo …" in shown
    assert "Playing 2 messages (1 hidden left out) into the chat demo-2 …" in out
    assert "It is raining." in out
    assert "Never mind" not in out
    assert processes_of(folder) == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot read {path}: No such file or directory"),
        (b"\xff", "{path}: not UTF-8 at byte 0"),
        (b"Hello", "{path}: line 1: not JSON at column 1: unexpected character, expected a JSON value"),
        (b"", "{path}: contains no messages to play"),
    ],
)
async def test_an_unusable_file_is_reported_in_one_line(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / "chat.jsonl"
    if content is not None:
        path.write_bytes(content)
    code, out, error = await outcome_here(tmp_path, "demo", "--once", "--data", "data", "--input", str(path))
    assert (code, out) == (1, "")
    assert error == f"memobook: {complaint.format(path=path)}\n"
    assert not (tmp_path / "data").exists()
