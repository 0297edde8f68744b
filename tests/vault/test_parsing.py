"""What a page contains is read from it exactly, whatever the texts are, and so is what a person writes there."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.memories.memory import CATEGORIES
from app.vault.items import Item, PageError
from app.vault.pages import word_scene
from app.vault.parsing import read_page
from app.vault.structure import find_problems
from app.vault.wording import (
    NOTHING,
    close_code,
    hash_name,
    make_mark,
    tidy,
    word_element,
    word_fact,
    word_memo,
    word_memory,
    word_section,
)

SUMMARY, SCENES = "summary.md", "scenes.md"

_PIECES = (
    *"\n `*_[]()#-=~\\^:,.>|【】'’\"\t\r",
    *("\n\n", "# ", "## ", "\n- ", "\n  ", "```", "\n```\n", "~~~", "\n---\n", "\n===", "**", "**: ", "[personal] "),
    *(
        " *archived*",
        "*archived*",
        " `,`",
        " `a b`",
        "\n【Highlight 2】: ",
        "\n^memo-0192f3a1b2c3",
        " ^memory-0192f3a1b2c3",
    ),
    *(
        "[message 1](story/0001.md#^m1) ^entry-0192f3a1b2c3",
        "*Nothing yet.*",
        "日本語",
        "🌧️",
        "a",
        "word",
        "\u2028",
        "\x1c",
    ),
)
_texts = st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), min_size=1, max_size=12).map("".join)
_texts = _texts.filter(lambda text: tidy(text) != "" and _is_sound(text))
_tags = st.lists(_texts.filter(lambda tag: tag.strip(" ") != ""), max_size=3).map(tuple)
_keys = _texts.map(lambda text: " ".join(text.split())).filter(bool)
_memories = st.tuples(st.sampled_from([None, *CATEGORIES]), _texts, _tags, st.booleans())


def _is_sound(text: str) -> bool:
    return "\0" not in text and text.encode(errors="ignore").decode() == text


def _read(page: str, text: str) -> Sequence[Item]:
    items, strays = read_page(page, text)
    assert not strays
    return items


@given(st.lists(_memories, max_size=4), st.booleans())
@example([(None, "run `ls`", (), False), ("goal", "[x] *archived*", (), False), (None, "\\[x", (), True)], True)
@example([(None, "x", ("a b", "c,d", "`", "\\", "\\n", "\n", " e"), True)], True)
def test_memories_are_read_as_they_were_written(
    memories: list[tuple[str | None, str, tuple[str, ...], bool]], windows: bool
) -> None:
    page = "# 2026-01-01\n\n## 12:00 — Mira and Kai\n\n"
    for number, (category, content, tags, archived) in enumerate(memories):
        page += word_element(word_memory(category, content, tags, archived=archived), make_mark("memory", f"{number}"))
    page = page.replace("\n", "\r\n") if windows else page
    assert [(item.mark, item.parts) for item in _read("2026-01-01.md", page)] == [
        (f"memory-{number}", (tidy(content), (category, tags), archived))
        for number, (category, content, tags, archived) in enumerate(memories)
    ]


@given(st.dictionaries(_keys, _texts, max_size=4), st.lists(_texts, max_size=3))
def test_facts_and_blocks_are_read_as_they_were_written(facts: dict[str, str], blocks: list[str]) -> None:
    page = "# Memory\n\n## Facts\n\n"
    page += "".join(
        word_element(word_fact(key, value), make_mark("fact", hash_name(key))) for key, value in facts.items()
    )
    page += "\n" + "".join(word_section("Core memory: user", text, f"block-{n}") for n, text in enumerate(blocks))
    items = _read("MEMORY.md", page)
    assert [(one.name, one.text) for one in items if one.kind == "fact"] == [(k, tidy(v)) for k, v in facts.items()]
    assert [one.text for one in items if one.kind == "block"] == [close_code(tidy(text)) for text in blocks]


@given(st.lists(_texts, max_size=4), st.sampled_from(["", "[messages 1–8](story/0001.md#^m1)"]))
@example(["【Highlight 1】: a\n【Highlight 2】: b\n\n【Highlight 3】: c", "\\## a\n## b\n\\---\n---", "```\n## c"], "")
def test_memos_are_read_as_they_were_written(texts: list[str], link: str) -> None:
    page = "# Memo book\n\n" + "".join(
        word_section(f"{n} · Saturday", word_memo(text), f"memo-{n}", link) for n, text in enumerate(texts)
    )
    items = list(_read("memos.md", page or NOTHING))
    assert [(one.mark, one.text) for one in items] == [
        (f"memo-{n}", close_code(tidy(text))) for n, text in enumerate(texts)
    ]
    assert find_problems("memos.md", {str(one.mark): one.digests for one in items}, items, []) == []


@given(st.lists(st.tuples(st.sampled_from(["Kai", "日本"]), _texts), max_size=4))
def test_diaries_are_read_as_they_were_written(entries: list[tuple[str, str]]) -> None:
    page = "".join(
        f"# {name}’s diary\n\n{word_section('Saturday, 12:00', text, f'entry-{n}')}"
        for n, (name, text) in enumerate(entries)
    )
    items = list(_read("diary.md", page))
    assert [(one.name, one.mark, one.text) for one in items] == [
        (f"{name}’s diary", f"entry-{n}", close_code(tidy(text))) for n, (name, text) in enumerate(entries)
    ]
    assert find_problems("diary.md", {str(one.mark): one.digests for one in items}, items, []) == []


@given(st.sampled_from(["memo", "entry"]), st.lists(_texts, min_size=1, max_size=3), st.randoms(use_true_random=False))
@example("memo", ["a\n## b\nc", "d\n# e"], Random(0))
@example("entry", ["a\n# Kai’s diary\n## 1\nc", "d\n\\```\ne"], Random(2))
@example("memo", ["a\n## 0\nb"], Random(0))
@example("entry", ["a\n## 0\nb"], Random(0))
def test_no_words_are_lost_with_a_backslash(kind: str, texts: list[str], random: Random) -> None:
    """An editor drops backslashes: the page is refused, or its items have all words that it had."""
    page, title = ("memos.md", "# Memo book") if kind == "memo" else ("diary.md", "# Kai’s diary")
    sections = (word_section(f"{n}", text, f"{kind}-{n}") for n, text in enumerate(texts))
    written = f"{title}\n\n{''.join(sections)}"
    exported = _read(page, written)
    dropped = "".join(one for one in written if one != "\\" or random.random() < 0.5)
    try:
        items, strays = read_page(page, dropped)
    except PageError:
        return
    if find_problems(page, {str(one.mark): one.digests for one in exported}, items, strays):
        return
    now, before = (
        [(one.mark, "".join(one.text.replace("\\", "").split())) for one in found] for found in (items, exported)
    )
    assert now == before


_maybe = st.none() | _texts


@given(_maybe, _maybe, _maybe, st.lists(st.tuples(st.none() | st.text(), _maybe), max_size=3))
@example(
    "a", "# b\n## The story so far", "^recap-recap\n# c\n^scene-1", [("2 · 3", "## 1"), ("1984", None), (" ", "# d")]
)
def test_narratives_are_read_as_they_were_written(
    kept: str | None, folded: str | None, recap: str | None, scenes: list[tuple[str | None, str | None]]
) -> None:
    """And their pages have no problem of structure."""
    written = [(SUMMARY, "Kept", kept, "summary-kept"), (SUMMARY, "The story so far", folded, "summary-text")]
    written += [(SCENES, "The story so far", recap, "recap-recap")]
    pages = {SUMMARY: "# Summary\n\n", SCENES: "# Scenes\n\n"}
    for page, heading, text, mark in written:
        pages[page] += word_section(heading, text, mark) if text else ""
    for n, (title, text) in enumerate(scenes, start=1):
        pages[SCENES] += word_section(
            word_scene(n, title), text or "", f"scene-{n}", f"[message {n}](story/0001.md#^m1)"
        )
    items = {page: list(_read(page, text)) for page, text in pages.items()}
    for page, found in items.items():
        assert find_problems(page, {str(one.mark): one.digests for one in found}, found, []) == []
    texts = [close_code(tidy(text)) for text in (kept, folded) if text]
    assert [one.text for one in items[SUMMARY]] == (["\n\n".join(texts)] if texts else [])
    assert [one.parts for one in items[SCENES] if one.kind == "recap"] == [
        (close_code(tidy(text)),) for text in (recap,) if text
    ]
    assert [one.parts for one in items[SCENES] if one.kind == "scene"] == [
        (close_code(tidy(text or "")), " ".join((title or "").split()) or None, f"{n}")
        for n, (title, text) in enumerate(scenes, start=1)
    ]


def test_items_written_by_a_person_are_read() -> None:
    items, strays = read_page(
        "2026-01-01.md",
        "# 2026-01-01\n\n- Kai sings `music, loud`\n* [goal] Two lines,\nof one memory.\n"
        "+ [old] Gone. *archived*\n\nStray.\n",
    )
    assert [(one.line, one.mark, one.parts) for one in items] == [
        (3, None, ("Kai sings", (None, ("music", "loud")), False)),
        (4, None, ("Two lines,\nof one memory.", ("goal", ()), False)),
        (6, None, ("Gone.", ("old", ()), True)),
    ]
    assert [one.line for one in strays] == [8]
    items, strays = read_page(
        "memos.md", "# Memo book\n\n*Nothing yet.*\n\nLost.\n\n## Any words\n\n### Rain\n\nIt rained.\n"
    )
    assert [(one.mark, one.text) for one in items] == [(None, "### Rain\n\nIt rained.")]
    assert [one.line for one in strays] == [5]
    items, strays = read_page("MEMORY.md", "# Memory\n\n*Nothing yet.*\n\n- **boat**: blue\n- no key\n")
    assert [(one.mark, one.name, one.text) for one in items] == [(f"fact-{hash_name('boat')}", "boat", "blue")]
    assert [one.line for one in strays] == [6]


@pytest.mark.parametrize("page", ["MEMORY.md", "2026-01-01.md", "summary.md", "memos.md", "scenes.md", "diary.md"])
def test_a_formatter_may_rewrite_an_empty_page(page: str) -> None:
    assert read_page(page, f"{NOTHING}\n") == read_page(page, "_Nothing yet._\n") == ([], [])


@pytest.mark.parametrize("end", ["^memo-1\n\n## 2\n\nMore.\n\n^memo-2\n", ""])
def test_code_without_an_end_is_refused(end: str) -> None:
    """It would swallow the items below it."""
    with pytest.raises(PageError, match=r"memos\.md: line 5: the code that begins here has no end\."):
        read_page("memos.md", f"# Memo book\n\n## 1\n\n```\ncode\n\n{end}")
