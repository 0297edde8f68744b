"""What a person changed on the pages of the summary and of the scenes of a vault counts in the chat."""

import io
import re
from typing import Any

import asyncpg
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
    before = await _shown(api)
    empty = dict(files)
    _replace(files, SUMMARY, r"\Z", "\n## Before\n\nThey wrote letters.\n\n## Now\n\nThey met.\n")
    _replace(files, SCENES, r"\Z", "\n## The story so far\n\n- Kai waits.\n\n## The pier\n\nThey parted.\n")
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 2), outcome
    assert outcome.skipped[0].startswith("summary.md, line 5: is no part of an item")
    assert outcome.skipped[1].startswith("scenes.md, line 9: a scene begins with a break")
    assert await _shown(api) == before
    files = empty
    _replace(files, SUMMARY, r"\Z", "\n## Kept\n\nThey wrote.\n\n## The story so far\n\nThey met.\n")
    _replace(files, SCENES, r"\Z", "\n## The story so far\n\n- Kai waits.\n")
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 2, 0, 0), outcome
    assert await _shown(api) == ("They wrote.\n\nThey met.", "", "- Kai waits.")
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)


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


async def _make_two_parts(api: httpx.AsyncClient, connection: asyncpg.Connection, ref: ChatRef) -> None:
    """The same chat, with a fold in its summary: the page has the section that is kept, and the one that is folded."""
    await _make(api)
    await _write(api, "/summary", {"text": "They met.\n\n# Aside\nThe sister is Ana."})
    await _write(api, "/recap", {"text": "# State\n- Kai: tired\n\n# Threads\n- the lost key"})
    await connection.execute(
        "UPDATE narrative_versions SET text = 'They sailed.' WHERE chat_key = $1 AND layer = 'summary' AND current",
        ref.key,
    )


RECAP_AGAIN = "\n## The story so far\n\n- Kai waits.\n"


@pytest.mark.parametrize(
    ("page", "old", "new", "words"),
    [
        (SUMMARY, r"\\# Aside", "# Aside", "line 7: is no part"),
        (SUMMARY, r"\\# Aside", "## Aside", "line 7: is no part"),
        (SUMMARY, r"The sister is Ana\.\n", "The sister is Ana.\n\n## Later\n", "line 10: is no part"),
        (SUMMARY, r"The sister is Ana\.\n\n\^summary-kept", "The sister is Ana.\n# Later", "line 9: is no part"),
        (SUMMARY, r"\^summary-kept\n", "^summary-kept\n\n### Later\n", "line 12: is no part"),
        (SUMMARY, r"(?s)\A.*?## Kept\n\n", "", "line 1: is no part"),
        (SUMMARY, r"## The story so far\n", "", "line 13: is no part"),
        (SUMMARY, r"(?s)\^summary-kept\n\n## The story so far\n", "", "line 3: is no part"),
        (
            SUMMARY,
            r"\^summary-kept\n\n## The story so far\n\n(.*\n\n)\^summary-text\n",
            "",
            "line 3: the page does not have",
        ),
        (SUMMARY, r"(?s)## The story.*\Z", "", "line 3: the page does not have the headings"),
        (SUMMARY, r"(?s)## Kept.*?(?=## The)", "", "line 3: the page does not have the headings"),
        (SUMMARY, r"\Z", RECAP_AGAIN, "line 19: is no part"),
        (SUMMARY, "# Summary", "# Summary\n\nThey ran.", "line 3: is no part"),
        (SUMMARY, r"\Z", "\n# They ran.\n", "line 19: is no part"),
        (SCENES, r"\\# Threads", "# Threads", "line 8: is no part"),
        (SCENES, r"\\# Threads", "## Threads", "line 8: is no part"),
        (SCENES, r"\\# State", "## State", "line 5: is no part"),
        (SCENES, r"## The story so far\n\n\\# State", "## State", "line 3: is no part"),
        (SCENES, r"## The story so far", "## Before", "line 3: is no part"),
        (SCENES, r"(?s)## The story so far(.*?)\^recap-recap\n", "## Before\n- Kai: awake\n", "line 3: a scene begins"),
        (SCENES, r"\\# Outcomes", "# Outcomes", "is no part"),
        (SCENES, r"\\# Outcomes\n", "# Outcomes\n## They slept\n", "is no part"),
        (SCENES, r"They ate\.", "They ate.\n\n## Later\n\nThey slept.", "a scene begins with a break"),
        (SCENES, r"They ate\.", "They ate.\n\n##\n", "a scene begins with a break"),
        (SCENES, r"\[.*\^scene-\w+\n\n## 2\n", "", "line 13: the heading has to begin with the number"),
        (SCENES, r"\n\[.*\^scene-\w+\n", "\n", "a scene begins with a break"),
        (SCENES, r"\Z", RECAP_AGAIN, "is no part"),
        (SCENES, r"\Z", "\n## 3 · At sea\n", "a scene begins with a break"),
        (SCENES, "## 1 · The inn", "## 1984", "line 13: the heading has to begin with the number"),
        (SCENES, r"## 2\n", "## 1984\n", "the heading has to begin with the number"),
        (SCENES, "## 1 · The inn", "## The old inn", "line 13: the heading has to begin with the number"),
    ],
)
async def test_a_page_with_another_structure_changes_nothing(
    api: httpx.AsyncClient,
    connection: asyncpg.Connection,
    database: Database,
    tenant: str,
    clock: SteppedClock,
    page: str,
    old: str,
    new: str,
    words: str,
) -> None:
    await _make_two_parts(api, connection, ref_of(tenant))
    files = await _files(database, ref_of(tenant))
    before = await _shown(api)
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
    for wanted, other in ((SUMMARY, ("They sailed", "They swam")), (SCENES, ("They ate", "They slept"))):
        if wanted == page:
            _replace(files, page, *other)
    old = old.replace("They ate", "They slept")
    _replace(files, page, old, new)
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert (outcome.edited, outcome.added, outcome.removed) == (0, 0, 0), outcome
    assert words in outcome.skipped[0]
    assert all(line.startswith(f"{page}, line ") for line in outcome.skipped)
    assert all("nothing on this page was changed" in line for line in outcome.skipped)
    assert await _shown(api) == before


async def test_a_second_recap_never_replaces_the_first(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """Neither one that the chat changed since the export nor one that it deleted; a second run changes nothing, too."""
    await _make(api)
    files = await _files(database, ref_of(tenant))
    _replace(files, SCENES, r"\Z", RECAP_AGAIN)
    await _write(api, "/recap", {"text": "# State\n- the newer recap"})
    before = await _shown(api)
    for _ in range(2):
        outcome = await _reindex(database, ref_of(tenant), files, clock)
        assert _numbers(outcome) == (0, 0, 0, 1)
        assert outcome.skipped[0].startswith("scenes.md, line 24: is no part of an item; nothing on this page")
        assert await _shown(api) == before
    version = (await get(api, "/recap"))["version"]
    ok(await api.delete(f"/v1/chats/c/recap/versions/{version}"), 204)
    before = await _shown(api)
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 1)
    assert await _shown(api) == before


async def test_a_recap_of_the_chat_is_not_replaced_by_a_new_one(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 2))
    files = await _files(database, ref_of(tenant))
    _replace(files, SCENES, r"\Z", RECAP_AGAIN)
    await _write(api, "/recap", {"text": "- the newer recap"})
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 1)
    assert outcome.skipped[0].endswith("the chat has it with another text")
    assert (await get(api, "/recap"))["text"] == "- the newer recap"


async def test_the_titles_of_unmarked_scenes_stay(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    for seq in (2, 4, 6):
        ok(await api.put(f"/v1/chats/c/scenes/breaks/{seq}"), 201)
    for one, title in zip((await get(api, "/scenes"))["items"][:3], ("The inn", "The sea", "The pier"), strict=True):
        ok(await api.patch(f"/v1/chats/c/scenes/{one['id']}", json={"title": title}), 200)
    files = await _files(database, ref_of(tenant))
    before = (await get(api, "/scenes"))["items"]
    assert [one["title"] for one in before] == ["The inn", "The sea", "The pier", None]
    for _ in range(3):
        _replace(files, SCENES, r"\n\[.*\^scene-\w+\n", "\n")
    _replace(files, SCENES, r"## 1 · The inn\n", "## 1 · The inn\n\nThey met at the inn.\n")
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 3), outcome
    assert all("a scene begins with a break" in line for line in outcome.skipped)
    assert (await get(api, "/scenes"))["items"] == before


async def test_a_removed_scene_keeps_the_others_as_they_are(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    before = await _shown(api)
    _replace(files, SCENES, r"(?s)## 1.*?(?=## 2)", "")
    _replace(files, SCENES, "tired", "awake")
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 1)
    assert "a scene is removed by deleting its break" in outcome.skipped[0]
    assert outcome.skipped[0].endswith("; nothing on this page was changed")
    assert await _shown(api) == before


async def test_sections_and_scenes_in_another_order_are_named(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    before = await _shown(api)
    whole = files[SCENES].decode()
    recap, first, second = re.split(r"(?=## [12T])", whole)[1:]
    files[SCENES] = f"# Scenes\n\n{recap}{second}{first}".replace("ate", "slept").encode()
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 1)
    assert "is not where it was in the export" in outcome.skipped[0]
    assert await _shown(api) == before


async def test_both_sections_of_a_summary_can_be_edited(
    api: httpx.AsyncClient, connection: asyncpg.Connection, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """They become one text; a second run changes nothing."""
    await _make_two_parts(api, connection, ref_of(tenant))
    files = await _files(database, ref_of(tenant))
    _replace(files, SUMMARY, "They sailed", "They swam")
    _replace(files, SUMMARY, "They met", "They parted")
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (1, 0, 0, 0)
    after = await _shown(api)
    assert after[:2] == ("They parted.\n\n# Aside\nThe sister is Ana.\n\nThey swam.", "")
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
    assert await _shown(api) == after


async def test_the_spaces_of_a_title_are_one(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    _replace(files, SCENES, "The inn", "The  old   inn")
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (1, 0, 0, 0)
    assert (await _shown(api))[-2][0] == "The old inn"
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
