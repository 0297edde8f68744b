"""What a person changed in the Markdown of a vault counts in the chat."""

import io
import re
from typing import Any

import httpx
import pytest

from app.chats.chat_lock import ChatRef
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.vault.archive import open_vault
from app.vault.errors import InvalidVault
from app.vault.reindex import Outcome, read_changes, reindex
from tests.memories.asking import Learner
from tests.talk import append, get, ok, put, said, talk
from tests.vault.vaults import Files, export, files_of, ref_of, restore, zip_of

KAI = "diary.md"


async def _make(api: httpx.AsyncClient) -> None:
    await put(api, user_id="mira", characters=[{"name": "Kai"}], settings={"preset": "companion"})
    await append(api, talk(1, 4))
    for key in ("boat", "dog"):
        ok(await api.put(f"/v1/chats/c/facts/{key}", json={"value": f"The {key} is blue."}), 201)
    for text in ("Kai keeps letters.", "Kai is afraid of storms.", "Mira sings."):
        memory = {"content": text, "category": "personal", "tags": ["kai"]}
        ok(await api.post("/v1/chats/c/memories", json=memory), 201)
    for text in ("They met.", "They drove to the sea.", "They parted."):
        ok(await api.post("/v1/chats/c/memos", json={"text": text}), 201)
    for text in ("She came back.", "It rained."):
        ok(await api.post("/v1/chats/c/diary", json={"content": text}), 201)


async def _files(database: Database, ref: ChatRef) -> Files:
    return files_of(await export(database, ref))


async def _reindex(
    database: Database, ref: ChatRef, files: Files, clock: SteppedClock, *, dry_run: bool = False
) -> Outcome:
    changes = read_changes(open_vault(io.BytesIO(zip_of(files))))
    return await reindex(database, ref, changes, now=clock(), dry_run=dry_run)


async def test_days_of_an_old_story_have_pages(
    api: httpx.AsyncClient, learn: Learner, database: Database, clock: SteppedClock, tenant: str
) -> None:
    await put(api, user_id="mira", characters=[{"name": "Kai"}], settings={"consolidation": {"enabled": False}})
    await append(api, [said(1, sent_at="0800-05-01T08:00:00Z")])
    await learn("The longships came up the river.", "m1")
    files = await _files(database, ref_of(tenant))
    assert _day(files) == "0800-05-01.md"
    assert "- [Monday, 1 May 800](0800-05-01.md)\n" in files["README.md"].decode()
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
    _replace(files, "0800-05-01.md", ("river", "fjord"))
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (1, 0, 0, 0)


def _numbers(outcome: Outcome) -> tuple[int, int, int, int]:
    return outcome.edited, outcome.added, outcome.removed, len(outcome.skipped)


def _day(files: Files) -> str:
    (day,) = [name for name in files if re.fullmatch(r"\d{4}-.*\.md", name)]
    return day


def _replace(files: Files, page: str, *pairs: tuple[str, str]) -> None:
    text = files[page].decode()
    for old, new in pairs:
        assert re.search(old, text), old
        text = re.sub(old, lambda _, new=new: new, text, count=1)  # type: ignore[misc]
    files[page] = text.encode()


def _edit_all(files: Files) -> None:
    """Change, remove and add one item of each kind."""
    _replace(
        files,
        _day(files),
        (r"\[personal\] Kai keeps letters\.", "[goal] Kai *burns*\n  the letters."),
        (r"- .*storms.*\n", ""),
        (r"\Z", "\n- [preference] Kai likes 海鮮 🦐 `food, sea food`\n"),
    )
    _replace(
        files,
        "MEMORY.md",
        (r"The boat is blue\.", "The boat is red."),
        (r"- \*\*dog\*\*.*\n", "- **cat**: The cat is grey.\n"),
    )
    _replace(
        files,
        "memos.md",
        (r"They met\.", "They met in the rain.\n\n```\n# not a heading\n```"),
        (r"(?s)## 2 .*?\n\n(?=## 3)", "## new\n\nThey bought a kite.\n\n"),
    )
    memos = files["memos.md"].decode()
    files["memos.md"] = (memos + "## later\n\nThey wrote a letter.\n").encode()
    _replace(
        files,
        KAI,
        (r"She came back\.", "She came back at night."),
        (r"(?s)## [^#]*It rained\..*$", "## tonight\n\nI could not sleep.\n"),
    )


async def _texts(api: httpx.AsyncClient, path: str, name: str) -> list[Any]:
    return [one[name] for one in (await get(api, path))["items"]]


async def test_changes_of_a_person_are_applied(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    ids = set(await _texts(api, "/memories", "id"))
    files = await _files(database, ref_of(tenant))
    _edit_all(files)
    clock.step(60)
    before = await _files(database, ref_of(tenant))
    tried = await _reindex(database, ref_of(tenant), files, clock, dry_run=True)
    assert await _files(database, ref_of(tenant)) == before
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert outcome == tried
    assert not outcome.skipped
    facts = {one["key"]: one for one in (await get(api, "/facts"))["items"]}
    assert {key: one["value"] for key, one in facts.items()} == {"boat": "The boat is red.", "cat": "The cat is grey."}
    assert {one["origin"] for one in facts.values()} == {"person"}
    memories = {one["content"]: one for one in (await get(api, "/memories"))["items"]}
    assert memories.keys() == {"Kai *burns*\nthe letters.", "Mira sings.", "Kai likes 海鮮 🦐"}
    edited, added = memories["Kai *burns*\nthe letters."], memories["Kai likes 海鮮 🦐"]
    assert (edited["category"], edited["tags"], edited["id"] in ids) == ("goal", ["kai"], True)
    assert (added["category"], added["tags"], added["origin"]) == ("preference", ["food", "sea food"], "person")
    assert await _texts(api, "/memos", "text") == [
        "They met in the rain.\n\n```\n# not a heading\n```",
        "They bought a kite.",
        "They parted.",
        "They wrote a letter.",
    ]
    assert await _texts(api, "/diary", "content") == ["She came back at night.", "I could not sleep."]
    # The index of the search reads the texts of layers as they are.
    found = ok(await api.post("/v1/chats/c/memories/search", json={"query": "kite burns"}), 200)["hits"]
    assert {"They bought a kite.", "Kai *burns*\nthe letters."} <= {one["text"] for one in found}
    found = ok(await api.post("/v1/chats/c/memories/search", json={"query": "storms"}), 200)["hits"]
    assert "Kai is afraid of storms." not in {one["text"] for one in found}


async def test_a_second_run_changes_nothing(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """Neither with the same files nor with those of a new export."""
    await _make(api)
    files = await _files(database, ref_of(tenant))
    _edit_all(files)
    await _reindex(database, ref_of(tenant), files, clock)
    after = await _files(database, ref_of(tenant))
    for again in (files, after):
        tag = (await api.get("/v1/chats/c/memos")).headers["etag"]
        assert _numbers(await _reindex(database, ref_of(tenant), again, clock)) == (0, 0, 0, 0)
        assert (await api.get("/v1/chats/c/memos")).headers["etag"] == tag
        assert await _files(database, ref_of(tenant)) == after


async def test_items_changed_in_the_chat_since_are_named_and_stay(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    _edit_all(files)
    ok(await api.put("/v1/chats/c/facts/boat", json={"value": "The boat sank."}), 200)
    ok(await api.put("/v1/chats/c/facts/cat", json={"value": "The cat is white."}), 201)
    for path, texts in (
        ("memories", {"Kai keeps letters.": "Kai hides letters.", "Kai is afraid of storms.": "Kai loves storms."}),
        ("memos", {"They met.": None, "They drove to the sea.": "They walked to the sea."}),
        ("diary", {"She came back.": "She came home.", "It rained.": None}),
    ):
        name = "text" if path == "memos" else "content"
        for one in (await get(api, f"/{path}"))["items"]:
            if one[name] in texts:
                url = f"/v1/chats/c/{path}/{one['id']}"
                new = texts[one[name]]
                ok(await (api.patch(url, json={name: new}) if new else api.delete(url)), 200 if new else 204)
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert (await get(api, "/facts/boat"))["value"] == "The boat sank."
    assert (await get(api, "/facts/cat"))["value"] == "The cat is white."
    assert {"Kai hides letters.", "Kai loves storms."} <= set(await _texts(api, "/memories", "content"))
    assert "They met." not in await _texts(api, "/memos", "text")
    assert "They walked to the sea." in await _texts(api, "/memos", "text")
    assert set(await _texts(api, "/diary", "content")) == {"She came home."}
    pages = {line.partition(",")[0] for line in outcome.skipped}
    assert pages == {_day(files), "MEMORY.md", "memos.md", "diary.md"}
    assert outcome.removed == 1  # the fact of the dog


async def test_items_deleted_in_the_chat_stay_deleted(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """Also a text that was added on the pages, and then deleted in the chat."""
    await _make(api)
    files = await _files(database, ref_of(tenant))
    _edit_all(files)
    await _reindex(database, ref_of(tenant), files, clock)
    for path in ("memories", "memos", "diary"):
        for one in (await get(api, f"/{path}"))["items"]:
            ok(await api.delete(f"/v1/chats/c/{path}/{one['id']}"), 204)
    ok(await api.delete("/v1/chats/c/facts/cat"), 204)
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert (outcome.edited, outcome.added, outcome.removed) == (0, 0, 0)
    assert len([line for line in outcome.skipped if line.endswith("was deleted in the chat")]) == 3
    for path in ("memories", "memos", "diary"):
        assert (await get(api, f"/{path}"))["items"] == []


async def test_a_deleted_fact_stays_deleted_beside_a_wider_value(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    _replace(files, "MEMORY.md", (r"- \*\*dog", "- **cat**: The cat is grey.\n- **dog"))
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 1, 0, 0)
    ok(await api.delete("/v1/chats/c/facts/cat"), 204)
    clock.step(60)
    ok(await api.put("/v1/users/mira/facts/cat", json={"value": "The cat is red."}), 201)
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 1)
    assert outcome.skipped[0].endswith("was deleted in the chat")
    assert set(await _texts(api, "/facts", "key")) == {"boat", "dog"}


async def test_items_newer_than_the_export_stay(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    ok(await api.post("/v1/chats/c/memories", json={"content": "New."}), 201)
    ok(await api.post("/v1/chats/c/memos", json={"text": "New."}), 201)
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
    assert "New." in await _texts(api, "/memories", "content")
    _replace(files, _day(files), (r"\Z", "- New.\n"))
    _replace(files, "memos.md", (r"\Z", "## now\n\nNew.\n"))
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)


async def test_the_archive_is_on_the_page(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    (one,) = [one for one in (await get(api, "/memories"))["items"] if one["content"] == "Mira sings."]
    ok(await api.patch(f"/v1/chats/c/memories/{one['id']}", json={"archived": True}), 200)
    files = await _files(database, ref_of(tenant))
    assert "- [personal] Mira sings. `kai` *archived* ^memory-" in files[_day(files)].decode()
    _replace(files, _day(files), (r" \*archived\*", ""), (r"letters\. `kai`", "letters. `kai` *archived*"))
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (2, 0, 0, 0)
    shown = {one["content"]: one["archived"] for one in (await get(api, "/memories"))["items"]}
    assert shown == {"Mira sings.": False, "Kai is afraid of storms.": False}


async def test_changes_that_cannot_be_applied_are_named(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    ok(await api.put("/v1/chats/c/blocks/user", json={"text": "Mira.\n\n## h"}), 201)
    files = await _files(database, ref_of(tenant))
    assert "Mira.\n\n\\## h\n" in files["MEMORY.md"].decode()
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
    _replace(files, "MEMORY.md", ("Mira", "Nell"), (r"- \*\*boat", "- **a/b**: slash\n- **boat"))
    _replace(files, _day(files), (r"\Z", "\nStray.\n- [idea] A kite.\n- " + "x" * 2_001 + "\n"))
    _replace(files, KAI, (r"\Z", "# Nell’s diary\n\n## now\n\nHello.\n"))
    outcome = await _reindex(database, ref_of(tenant), files, clock)
    assert _numbers(outcome) == (0, 0, 0, 6), outcome.skipped
    reasons = "\n".join(outcome.skipped)
    assert "MEMORY.md, line 9: core memory is not read from the pages" in reasons
    for words in ("key: must not contain a slash", "is no part of an item", "category: ", "content: ", "character: "):
        assert words in reasons


async def test_a_restored_chat_takes_changes_and_another_does_not(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    await _make(api)
    clock.step(1)
    await put(api, "other")
    vault = await export(database, ref_of(tenant))
    await restore(database, vault, ref_of(tenant, "d"))
    files = files_of(vault)
    _edit_all(files)
    with pytest.raises(InvalidVault, match="that of another chat than 'other'"):
        await _reindex(database, ref_of(tenant, "other"), files, clock)
    outcome = await _reindex(database, ref_of(tenant, "d"), files, clock)
    assert not outcome.skipped
    assert ok(await api.get("/v1/chats/d/facts/boat"), 200)["value"] == "The boat is red."
    assert (await get(api, "/facts/boat"))["value"] == "The boat is blue."


async def test_a_value_of_another_chat_is_no_removed_line(
    api: httpx.AsyncClient, database: Database, tenant: str, clock: SteppedClock
) -> None:
    """The value that this chat taught its user is not on its pages while a later one of another chat holds."""
    for name in ("c", "other"):
        await put(
            api, name, user_id="mira", characters=[{"name": "Kai"}], settings={"memories": {"learn_scope": "user"}}
        )
        await append(api, talk(1, 2), name)
        fact = {"key": "boat", "value": f"Blue in {name}."}
        ok(await api.post(f"/v1/chats/{name}/tools/set_fact", json=fact), 200)
        clock.step(60)
    files = await _files(database, ref_of(tenant))
    assert "Blue in" not in files["MEMORY.md"].decode()
    ok(await api.delete("/v1/chats/other"), 204)
    assert _numbers(await _reindex(database, ref_of(tenant), files, clock)) == (0, 0, 0, 0)
    assert (await get(api, "/facts/boat"))["value"] == "Blue in c."


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("state.json", r"it has no file 'state\.json'"),
        ("marks.json", r"has no file 'marks\.json'"),
        ("memos.md", r"has no file 'memos\.md'"),
    ],
)
async def test_a_missing_file_is_named(
    api: httpx.AsyncClient, database: Database, tenant: str, missing: str, words: str
) -> None:
    await _make(api)
    files = await _files(database, ref_of(tenant))
    del files[missing]
    with pytest.raises(InvalidVault, match=words):
        read_changes(open_vault(io.BytesIO(zip_of(files))))
    files = await _files(database, ref_of(tenant))
    del files[_day(files)]
    with pytest.raises(InvalidVault, match="has no file"):
        read_changes(open_vault(io.BytesIO(zip_of(files))))


@pytest.mark.parametrize(
    "marks", [b"{", b"[]", b'{"version": 3}', b'{"version": 4, "line": "", "files": [], "places": {"a": {"x": "y"}}}']
)
async def test_marks_of_another_form_are_refused(
    api: httpx.AsyncClient, database: Database, tenant: str, marks: bytes
) -> None:
    await append(api, talk(1, 2))
    files = await _files(database, ref_of(tenant))
    with pytest.raises(InvalidVault, match=r"marks\.json: .*export the vault again"):
        read_changes(open_vault(io.BytesIO(zip_of(files | {"marks.json": marks}))))


async def test_the_pages_of_another_line_are_refused(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await append(api, talk(1, 2))
    early = ok(await api.post("/v1/chats/c/checkpoints", json={"name": "early"}), 201)["line"]
    answer = await api.get("/v1/chats/c/export", params={"format": "vault", "line": early})
    with pytest.raises(InvalidVault, match=f"the line {early}, which was not the current one"):
        read_changes(open_vault(io.BytesIO(answer.content)))
