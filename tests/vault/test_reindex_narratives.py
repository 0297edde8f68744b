"""What a person changed on the pages of the summary and of the scenes of a vault counts in the chat."""

import io
import re
from typing import Any

import httpx
import pytest

from app.chats.chat_lock import ChatRef
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.vault.archive import open_vault
from app.vault.reindex import Outcome, read_changes, reindex
from tests.talk import append, get, ok, put, talk
from tests.vault.vaults import Files, export, files_of, ref_of, zip_of

SUMMARY, SCENES = "summary.md", "scenes.md"


async def _make(api: httpx.AsyncClient) -> None:
    """A chat with a summary, a running recap, and two closed scenes, of which one has a recap."""
    await put(api, user_id="mira", characters=[{"name": "Kai"}])
    await append(api, talk(1, 6))
    await _write(api, "/summary", {"text": "They met.\n\n# Aside", "keep": False})
    await _write(api, "/recap", {"text": "# State\n- Kai: tired"})
    for seq in (2, 4):
        ok(await api.put(f"/v1/chats/c/scenes/breaks/{seq}"), 201)
    first = (await get(api, "/scenes"))["items"][0]
    body = {"title": "The inn", "recap": "# Outcomes\n- They ate."}
    ok(await api.patch(f"/v1/chats/c/scenes/{first['id']}", json=body), 200)


async def _write(api: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    ok(await api.put(f"/v1/chats/c{path}", json=body), 200)


async def _files(database: Database, ref: ChatRef) -> Files:
    return files_of(await export(database, ref))


async def _reindex(
    database: Database, ref: ChatRef, files: Files, clock: SteppedClock, *, dry_run: bool = False
) -> Outcome:
    changes = read_changes(open_vault(io.BytesIO(zip_of(files))))
    return await reindex(database, ref, changes, now=clock(), dry_run=dry_run)


def _replace(files: Files, page: str, old: str, new: str) -> None:
    text = files[page].decode()
    assert re.search(old, text), text
    files[page] = re.sub(old, lambda _: new, text, count=1).encode()


def _numbers(outcome: Outcome) -> tuple[int, int, int, int]:
    return outcome.edited, outcome.added, outcome.removed, len(outcome.skipped)


async def _shown(api: httpx.AsyncClient) -> tuple[Any, ...]:
    """The texts of the summary, of the running recap, and of the closed scenes."""
    summary, recap = await get(api, "/summary"), await get(api, "/recap")
    scenes = [(one["title"], one["recap"]) for one in (await get(api, "/scenes"))["items"] if not one["open"]]
    return summary["kept_text"], summary["text"], recap["text"], *scenes


def _edit_all(files: Files) -> None:
    _replace(files, SUMMARY, "They met", "They met in the rain")
    _replace(files, SCENES, "tired", "awake")
    _replace(files, SCENES, "1 · The inn", "1 · The old inn")
    _replace(files, SCENES, "They ate", "They slept")


async def test_narratives_are_read_from_their_pages(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    before = await _shown(api)
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
    _edit_all(files)
    tried = await _reindex(database, ref_of(tenant), files, clock, dry_run=True)
    assert await _shown(api) == before
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert outcome == tried
    assert _numbers(outcome) == (3, 0, 0, 0), outcome.skipped
    after = (
        "They met in the rain.\n\n# Aside",
        "",
        "# State\n- Kai: awake",
        ("The old inn", "# Outcomes\n- They slept."),
        (None, None),
    )
    assert await _shown(api) == after
    origins = [(await get(api, path))["origin"] for path in ("/summary", "/recap")]
    assert origins == ["person", "person"]
    for again in (files, await _files(database, ref_of(tenant))):
        assert _numbers(await _reindex(database, ref_of(tenant), again, clock)) == (0, 0, 0, 0)
    assert await _shown(api) == after


async def test_an_untitled_scene_takes_a_title_and_a_recap(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    _replace(files, SCENES, r"## 2\n", "## 2 · At sea\n")
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (1, 0, 0, 0)
    assert (await _shown(api))[-1] == ("At sea", None)
    _replace(files, SCENES, r"## 2 · At sea\n", "## 2\n\nThe storm broke.\n")
    _replace(files, SCENES, r"## 1 · The inn\n", "## 1\n")
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (2, 0, 0, 0)
    assert (await _shown(api))[-2:] == ((None, "# Outcomes\n- They ate."), ("At sea", "The storm broke."))


async def test_narratives_of_an_empty_page_can_be_written(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 2))
    files = await _files(database, ref_of(tenant))
    assert "*Nothing yet.*" in files[SUMMARY].decode()
    _replace(files, SUMMARY, r"\Z", "\n## Before\n\nThey wrote letters.\n\n## Now\n\nThey met.\n")
    _replace(files, SCENES, r"\Z", "\n## The story so far\n\n- Kai waits.\n\n## The pier\n\nThey parted.\n")
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 2, 0, 1), outcome
    assert outcome.skipped[0].startswith("scenes.md, line 9: a scene begins with a break")
    assert await _shown(api) == ("They wrote letters.\n\nThey met.", "", "- Kai waits.")
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 1)


async def test_a_narrative_that_the_chat_changed_too_stays(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    _edit_all(files)
    await _write(api, "/summary", {"text": "They quarrelled."})
    await _write(api, "/recap", {"text": "- Kai: gone"})
    first = (await get(api, "/scenes"))["items"][0]
    ok(await api.patch(f"/v1/chats/c/scenes/{first['id']}", json={"recap": "They fasted."}), 200)
    before = await _shown(api)
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 3)
    assert all(line.endswith("changed in the chat too since the export") for line in outcome.skipped)
    assert await _shown(api) == before


@pytest.mark.parametrize(
    ("page", "old", "new", "words"),
    [
        (SUMMARY, r"(?s)## .*\Z", "", "summary.md, ^summary-text: a summary cannot be removed"),
        (SCENES, r"(?s)## The story.*?(?=## 1)", "", "scenes.md, ^recap-recap: the running recap is removed by"),
        (SCENES, r"(?s)## 1.*?(?=## 2)", "", "a scene is removed by deleting its break"),
        (SCENES, r"\\# Outcomes\n- They ate\.", "", "a scene is removed by deleting its break"),
        (SCENES, r"\n\\?# Outcomes\n- They ate\.\n", "\n" + "x" * 20_001 + "\n", "recap: must have at most"),
        (SCENES, "The inn", "The inn " * 9, "title: must have at most"),
        (SUMMARY, r"They met\.", "x" * 8_001, "text: must have at most 8000 characters, or 20000 with keep: false"),
    ],
)
async def test_changes_of_narratives_that_are_refused_are_named(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    page: str,
    old: str,
    new: str,
    words: str,
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    before = await _shown(api)
    _replace(files, page, old, new)
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 1)
    assert words in outcome.skipped[0]
    assert await _shown(api) == before
