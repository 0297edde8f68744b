"""The pages of a vault, as a person reads them."""

import httpx
import pytest

from app.kit.db import Database
from app.vault.wording import word_element, word_memo, word_memory, word_section, word_speech
from tests.conftest import NOON
from tests.talk import append, ok, put, said
from tests.vault.vaults import export, files_of, ref_of


async def test_a_chat_reads_as_a_story(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await put(api, user_name="Mira", characters=[{"name": "Kai"}], settings={"preset": "companion"})
    await append(
        api,
        [
            said(1, role="user", content="I found your letter."),
            said(2, role="assistant", content="# Then\nyou know."),
            said(3, role="narrator", content="Rain."),
        ],
    )
    ok(await api.put("/v1/chats/c/facts/boat", json={"value": "It is blue."}), 201)
    ok(await api.post("/v1/chats/c/memories", json={"content": "Kai keeps the letters.", "tags": ["letters"]}), 201)
    files = {name: content.decode() for name, content in files_of(await export(database, ref_of(tenant))).items()}
    story = files["story/0001.md"]
    assert story.startswith("# Chapter 1\n\n[Contents](../README.md)\n\n## ")
    assert "**Mira** · " in story
    assert "^m2\n\n\\# Then\nyou know.\n\n*Narration* · " in story
    assert "# Mira and Kai\n\n*3 messages, and what is remembered of them.*" in files["README.md"]
    assert "- **boat**: It is blue. ^fact-" in files["MEMORY.md"]
    assert files["memos.md"] == "# Memo book\n\n*Nothing yet.*\n"
    (day,) = [name for name in files if name.startswith("20")]
    assert "Kai keeps the letters. `letters` ^memory-" in files[day]
    linked = {part.split(")")[0] for part in files["README.md"].split("](")[1:]}
    assert linked == {name for name in files if name.endswith(".md")} - {"README.md"}


def test_a_speech_closes_its_open_code_block() -> None:
    assert word_speech("Kai", NOON, "```\ncode", "m1").count("```") == 2
    assert word_speech(None, NOON, " ", "m1").endswith("\n\n*(nothing said)*\n\n")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("~~~\ncode", "~~~\ncode\n~~~"),
        ("````\n```\ncode", "````\n```\ncode\n````"),
        ("```\ncode\n```", "```\ncode\n```"),
        ("```\n# a comment\n---\n```", "```\n# a comment\n---\n```"),
        ("```not``` code", "```not``` code"),
        ("Track # 5 of C# at last", "Track # 5 of C# at last"),
        ("#", "\\#"),
        ("Rain.\n  ## Then\nsun.", "Rain.\n  \\## Then\nsun."),
        ("Rain.\n---\nSun.\n===", "Rain.\n\\---\nSun.\n\\==="),
        ("Rain.\n\n---\n\nSun.", "Rain.\n\n---\n\nSun."),
    ],
)
def test_a_speech_is_no_heading_and_closes_its_code(text: str, written: str) -> None:
    assert word_speech("Kai", NOON, text, "m1") == f"**Kai** · {NOON:%H:%M} ^m1\n\n{written}\n\n"


def test_a_section_has_one_heading_and_closes_its_code() -> None:
    assert word_section("Part", "## One\n~~~\ncode", "memo-1") == "## Part\n\n\\## One\n~~~\ncode\n~~~\n\n^memo-1\n\n"


def test_a_long_line_of_backticks_is_read_at_once() -> None:
    text = "`" * 100_000 + "a`"
    assert text in word_speech("Kai", NOON, text, "m1")


def test_an_element_keeps_its_lines_and_tags() -> None:
    text = word_memory("plot", "One.\nTwo.", ["a b", "c"])
    assert word_element(text, "memory-1") == "- [plot] One.\n  Two. `a b, c,` ^memory-1\n"


def test_each_highlight_of_a_memo_is_a_paragraph() -> None:
    text = "【Highlight 1】: One.\nStill one.\n【Highlight 2】: Two."
    assert word_memo(text) == "【Highlight 1】: One.\nStill one.\n\n【Highlight 2】: Two."
