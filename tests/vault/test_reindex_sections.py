"""The pages of the memos and of the diaries of a vault are read only as a whole: no text on them is cut off."""

import io
import re

import httpx
import pytest

from app.chats.chat_lock import ChatRef
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.vault.archive import open_vault
from app.vault.reindex import Outcome, read_changes, reindex
from tests.talk import append, get, ok, put, talk
from tests.vault.vaults import Files, export, files_of, ref_of, zip_of

MEMOS, DIARY = "memos.md", "diary.md"
Texts = tuple[list[str], list[tuple[str, str]]]


async def _make(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    """A chat with three memos, two diary entries of Kai and two of Lia; the first text of each page has headings."""
    await put(api, user_id="mira", characters=[{"name": "Kai"}, {"name": "Lia"}], settings={"preset": "companion"})
    await append(api, talk(1, 4))
    for text in ("They met.\n\n# Aside\n\nHer sister is Ana.\n\n## Later\n\nThey ate.", "They sailed.", "They parted."):
        ok(await api.post("/v1/chats/c/memos", json={"text": text}), 201)
    for character, text in (
        ("Kai", "She came back.\n\n# Mood\n\nGlad.\n\n## Plans\n\nThe sea."),
        ("Kai", "It rained."),
        ("Lia", "He lies.\n\n^entry-0192f3a1b2c3\n\nI know it."),
        ("Lia", "He left."),
    ):
        clock.step(3_600)
        ok(await api.post("/v1/chats/c/diary", json={"content": text, "character": character}), 201)


async def _files(database: Database, ref: ChatRef) -> Files:
    return files_of(await export(database, ref))


async def _reindex(database: Database, ref: ChatRef, files: Files, clock: SteppedClock) -> Outcome:
    changes = read_changes(open_vault(io.BytesIO(zip_of(files))))
    return await reindex(database, ref, changes, now=clock(), dry_run=False)


def _replace(files: Files, page: str, *pairs: tuple[str, str]) -> None:
    text = files[page].decode()
    for old, new in pairs:
        assert re.search(old, text), text
        text = re.sub(old, lambda _, new=new: new, text, count=1)  # type: ignore[misc]
    files[page] = text.encode()


def _numbers(outcome: Outcome) -> tuple[int, int, int, int]:
    return outcome.edited, outcome.added, outcome.removed, len(outcome.skipped)


async def _shown(api: httpx.AsyncClient) -> Texts:
    memos, entries = (await get(api, "/memos"))["items"], (await get(api, "/diary"))["items"]
    return [one["text"] for one in memos], sorted((one["character"], one["content"]) for one in entries)


MARK_OF_FIRST = r"\n\^(memo|entry)-\w+\n"
ENTRY = "\n## tonight\n\nI wait.\n"


@pytest.mark.parametrize(
    ("page", "old", "new", "words"),
    [
        (MEMOS, r"\\# Aside", "# Aside", "line 7: is no part"),
        (MEMOS, r"\\## Later", "## Later", "line 11: the heading is not the one"),
        (MEMOS, r"\\# Aside", "## Aside", "line 7: the heading is not the one"),
        (MEMOS, r"(?s)\\## Later(.*?)\n\^memo-\w+\n", "## Later\n\nThey ate.\n", "line 3: its mark, ^memo-"),
        (MEMOS, r"(?s)\\## Later.*?\n\^memo-\w+\n", "## Later\n", "line 3: its mark, ^memo-"),
        (MEMOS, r"\n\^memo-\w+\n", "\n", "line 3: its mark, ^memo-"),
        (MEMOS, r"\n\^memo-", "\nMore. ^memo-", "is missing, or is not on a line of its own"),
        (MEMOS, r"\n\n\^memo-", "^memo-", "is missing, or is not on a line of its own"),
        (MEMOS, r"\n\^memo-", "\n[a picture](a.png) ^memo-", "line 3: its mark, ^memo-"),
        (MEMOS, r"## 1 · ", "## The first · ", "line 3: the heading is not the one"),
        (MEMOS, r"## 1 · .*\n", "", "line 4: is no part"),
        (MEMOS, r"# Memo book", "# Our memos", "line 1: is no part"),
        (MEMOS, r"# Memo book", "# Memo book\n\nThey ran.", "line 3: is no part"),
        (MEMOS, r"\n\^(memo-\w+)\n", "\n^memo-000000000000\nMore.\n", "is no part"),
        (MEMOS, r"(?s)(## 2.*?)(?=## 3)", "## They ran.\n\n", "line 17: a heading without a text"),
        (MEMOS, r"\Z", "\n# They ran.\n", "is no part"),
        (MEMOS, r"\Z", "\nThey ran.\n", "is no part"),
        (DIARY, r"\\# Mood", "# Mood", "line 7: is no part"),
        (DIARY, r"\\## Plans", "## Plans", "line 11: the heading, or the one of its diary, is not the one"),
        (DIARY, r"\\# Mood\n\nGlad\.\n\n\\## Plans", "# Lia’s diary\n\n## Plans", "line 9: the heading, or the one"),
        (DIARY, r"(?s)\\## Plans(.*?)\n\^entry-\w+\n", "## Plans\n\nThe sea.\n", "line 3: its mark, ^entry-"),
        (DIARY, r"\n\^entry-\w+\n", "\n", "line 3: its mark, ^entry-"),
        (DIARY, r"\n\\\^entry-", "\n^entry-", "is no part"),
        (DIARY, r"\n\^entry-", "\n[a picture](a.png) ^entry-", "line 3: its mark, ^entry-"),
        (DIARY, r"# Kai’s diary", "# Kai’s secrets", "line 1: is no part"),
        (DIARY, r"# Kai’s diary", "# Lia’s diary", "line 3: the heading, or the one"),
        (DIARY, r"# Kai’s diary\n", "", "line 2: the heading, or the one"),
        (DIARY, r"# Lia’s diary\n", "", "the heading, or the one"),
        (DIARY, r"\Z", "\n# They ran.\n\n## now\n\nFast.\n", "is no part"),
        (DIARY, r"\Z", f"{ENTRY}\n# They ran.\n", "is no part"),
        (DIARY, r"\Z", f"{ENTRY}\n# Nell’s diary\n", "is no part"),
        (DIARY, r"\Z", f"{ENTRY}\n# Kai’s diary\n", "is no part"),
        (DIARY, r"\Z", f"{ENTRY}\n## They ran.\n", "a heading without a text"),
        (DIARY, r"\Z", f"{ENTRY}\nI read in\n# Diary\n", "is no part"),
    ],
)
async def test_a_page_with_another_structure_changes_nothing(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    page: str,
    old: str,
    new: str,
    words: str,
) -> None:
    await _make(api, clock)
    files = await _files(database, ref_of(tenant))
    before = await _shown(api)
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
    _replace(files, page, (r"They parted\.|He left\.", "They kissed."), (old, new))
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome)[:3] == (0, 0, 0), outcome
    assert words in outcome.skipped[0]
    assert all(line.startswith(f"{page}, line ") for line in outcome.skipped)
    assert all("nothing on this page was changed" in line for line in outcome.skipped)
    assert await _shown(api) == before


@pytest.mark.parametrize(("page", "mark"), [(MEMOS, "^memo-"), (DIARY, "^entry-")])
async def test_a_text_with_its_own_heading_is_not_cut(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock, page: str, mark: str
) -> None:
    """The first part has no mark, and the second one has the mark and the heading of the export."""
    await _make(api, clock)
    files = await _files(database, ref_of(tenant))
    before = await _shown(api)
    heading = re.findall(r"(?m)^## .*", files[page].decode())[0]
    _replace(files, page, (r"\\# (Aside|Mood)", heading))
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 1), outcome
    assert f"{page}, line 3: the heading is that of {mark}" in outcome.skipped[0]
    assert await _shown(api) == before


@pytest.mark.parametrize("page", [MEMOS, DIARY])
async def test_texts_in_another_order_or_twice_are_named(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock, page: str
) -> None:
    await _make(api, clock)
    files = await _files(database, ref_of(tenant))
    before = await _shown(api)
    title, first, second, *rest = re.split(r"(?m)(?<=\n)^(?=##? )", files[page].decode())
    for parts, words in (
        ((title, second, first, *rest), "is not where it was in the export"),
        ((title, first, first.replace("They met", "They ran").replace("She came", "He came"), second, *rest), "twice"),
    ):
        changed = files | {page: "".join(parts).encode()}
        outcome = await _reindex(database, ref_of(tenant), changed, clock)
        assert _numbers(outcome) == (0, 0, 0, 1)
        assert words in outcome.skipped[0]
        assert await _shown(api) == before


async def test_texts_with_headings_are_edited_added_and_removed(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """The headings of new texts are named, because they are no part of them."""
    await _make(api, clock)
    files = await _files(database, ref_of(tenant))
    _replace(files, MEMOS, ("Aside", "Beside"), (r"(?s)## 2 .*?(?=## 3)", "## A night\n\nThey ran.\n\n\\# Far\n\n"))
    _replace(files, DIARY, ("Mood", "Joy"), (r"(?s)(## [^#]*It rained.*?)(?=# Lia)", ""), (r"\Z", ENTRY))
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (3, 1, 1, 0), outcome
    assert [line.partition(": ")[2] for line in outcome.notes] == [
        "the heading 'A night' is no part of the text and was not kept",
        "the heading 'tonight' is no part of the text and was not kept",
    ]
    memos, entries = await _shown(api)
    assert memos == [
        "They met.\n\n# Beside\n\nHer sister is Ana.\n\n## Later\n\nThey ate.",
        "They ran.\n\n# Far",
        "They parted.",
    ]
    assert entries == [
        ("Kai", "She came back.\n\n# Joy\n\nGlad.\n\n## Plans\n\nThe sea."),
        ("Lia", "He left."),
        ("Lia", "He lies.\n\n^entry-0192f3a1b2c3\n\nI know it."),
        ("Lia", "I wait."),
    ]
    for again in (files, await _files(database, ref_of(tenant))):
        assert _numbers(await _reindex(database, ref_of(tenant), again, clock)) == (0, 0, 0, 0)
    assert await _shown(api) == (memos, entries)


async def test_an_emptied_diary_keeps_its_heading(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api, clock)
    files = await _files(database, ref_of(tenant))
    _replace(files, DIARY, (r"(?s)(?<=Lia’s diary\n\n).*", ""))
    files[MEMOS] = b""
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 5, 0)
    memos, entries = await _shown(api)
    assert (memos, [character for character, _ in entries]) == ([], ["Kai", "Kai"])


async def test_texts_are_found_after_the_time_zone_changed(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """The headings that the chat has now are other ones."""
    await _make(api, clock)
    files = await _files(database, ref_of(tenant))
    ok(await api.put("/v1/chats/c", json={"time_zone": "Pacific/Auckland"}), 200)
    assert (await _files(database, ref_of(tenant)))[DIARY] != files[DIARY]
    _replace(files, MEMOS, ("They sailed", "They swam"))
    _replace(files, DIARY, (r"It rained\.", "It snowed."))
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (2, 0, 0, 0)
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
