"""Prompts that a deployment has replaced: read from a folder, checked, and refused in one line."""

from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.kit.settings import SettingsError
from app.kit.tokens import count_tokens
from app.summarising.prompt_folder import MAX_BYTES, PromptSet, load_prompts
from app.summarising.prompts import Prompt

BUILTIN = (
    Prompt("memo", "memo/1", "Rules.", "{{wish}} {{messages}}", frozenset({"wish", "messages"})),
    Prompt("summary", "summary/3", "Rules.", "{{former}} {{messages}}", frozenset({"former", "messages"})),
)
GOOD = "My rules,\nin two lines.\n\n=== user ===\n\n{{wish}}\n{{messages}}\n"


def load(folder: Path) -> PromptSet:
    return load_prompts(BUILTIN, folder)


def refusal(folder: Path) -> str:
    with pytest.raises(SettingsError) as refused:
        load(folder)
    said = str(refused.value)
    assert len(said.splitlines()) == 1
    return said


def test_without_a_folder_the_built_in_ones_hold() -> None:
    assert load_prompts(BUILTIN, None) == {"memo": BUILTIN[0], "summary": BUILTIN[1]}


def test_a_prompt_may_use_three_quarters_of_the_models_context(tmp_path: Path) -> None:
    (tmp_path / "memo.md").write_text(GOOD)
    takes = sum(map(count_tokens, ("My rules,\nin two lines.", "{{wish}}\n{{messages}}")))
    assert "memo" in load_prompts(BUILTIN, tmp_path, context_tokens=takes * 4 // 3 + 1)
    with pytest.raises(SettingsError, match=rf"memo\.md: takes {takes} of the {takes} tokens"):
        load_prompts(BUILTIN, tmp_path, context_tokens=takes)


def test_a_file_replaces_the_prompt_of_its_name_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "memo.md").write_text(GOOD)
    book = load(tmp_path)
    assert (book["memo"].system, book["memo"].user) == ("My rules,\nin two lines.", "{{wish}}\n{{messages}}")
    assert book["memo"].version == f"memo/custom-{sha256(GOOD.encode()).hexdigest()[:8]}"
    assert book["summary"] is BUILTIN[1]


def test_a_file_with_a_bom_and_crlf_is_read(tmp_path: Path) -> None:
    (tmp_path / "memo.md").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load(tmp_path)["memo"].system == "My rules,\nin two lines."


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "._memo.md").write_bytes(b"\x00")
    (tmp_path / "drafts").mkdir()
    assert load(tmp_path) == load_prompts(BUILTIN, None)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("memos.md", GOOD, "there is no prompt of this name; the prompts are memo, summary"),
        ("memo.md", "Rules. {{wish}} {{messages}}", "needs one line that is exactly === user ===, and has 0"),
        ("memo.md", GOOD + "=== user ===", "needs one line that is exactly === user ===, and has 2"),
        ("memo.md", GOOD.replace("===\n", "=== \n"), "needs one line that is exactly === user ===, and has 0"),
        ("memo.md", GOOD.replace("{{wish}}", ""), "has no {{wish}}"),
        ("memo.md", GOOD.replace("rules", "{{user}}"), "has an unknown {{user}}"),
        ("memo.md", GOOD + "{{messages}}", "has more than one {{messages}}"),
        ("memo.md", "", "needs one line that is exactly === user ===, and has 0"),
        ("memo.md", "\n=== user ===\n{{wish}}{{messages}}", "the system text is empty"),
        ("memo.md", "{{wish}}{{messages}}\n=== user ===\n \n", "the user text is empty"),
        ("memo.md", GOOD.encode("utf-16"), "is not UTF-8"),
        ("memo.md", GOOD + " " * MAX_BYTES, "has more than 65,536 bytes"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_it(tmp_path: Path, name: str, content: str | bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert refusal(tmp_path) == f"MEMOBOOK_PROMPTS_DIR: {tmp_path / name}: {problem}"


def test_an_unreadable_path_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "memo.md").symlink_to("memo.md")
    assert refusal(tmp_path).startswith(f"MEMOBOOK_PROMPTS_DIR: {tmp_path / 'memo.md'}: ")
    assert "No such file or directory" in refusal(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    assert "Not a directory" in refusal(tmp_path / "file")


def test_a_folder_that_is_named_like_a_prompt_is_no_prompt(tmp_path: Path) -> None:
    (tmp_path / "memo.md").mkdir()
    assert refusal(tmp_path) == f"MEMOBOOK_PROMPTS_DIR: {tmp_path / 'memo.md'}: is not a regular file"


def test_a_name_with_a_line_break_is_still_one_line(tmp_path: Path) -> None:
    (tmp_path / "a\nb\u2028c.md").write_text(GOOD)
    assert "a\\nb\\u2028c.md: there is no prompt of this name" in refusal(tmp_path)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: (GOOD + text).encode())))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_file_is_a_prompt_or_rejected_with_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "memo.md").write_bytes(content)
    try:
        prompt = load(tmp_path)["memo"]
    except SettingsError as error:
        said = [str(error)]
    else:
        said = [message["content"] for message in prompt.fill(wish="a wish", messages="some messages")]
    assert "some messages" in "".join(said) or len(said[0].splitlines()) == 1
