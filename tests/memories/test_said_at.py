"""The date of a memory is when it was said, also in a conversation that was imported long after."""

from datetime import datetime, timedelta
from itertools import chain
from typing import Any

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.conftest import NOON
from tests.facts.asking import USER, begin, checkpoint, fork, restore
from tests.memories.asking import Learner, listed, memories, write
from tests.search.finding import message
from tests.statements import watched
from tests.talk import CHAT, Json, append, context, cut_off, ok, reimport, soft_delete
from tests.vault.vaults import export, files_of, ref_of

DAY = timedelta(days=1)
DAY_S = 86_400
LANTERN = "The lantern of the {} pier is rusty."
NAMES = ("north", "south", "west", "east", "old", "new")


def sent(n: int, days_ago: float, content: str = "We sail on.") -> Json:
    """The nth message of a conversation, sent so long before noon."""
    return message(n, content, sent_at=(NOON - days_ago * DAY).isoformat())


async def dates(api: httpx.AsyncClient, **query: Any) -> dict[str, datetime]:
    """The dates of the memories that are not in the archive."""
    return {one["content"]: datetime.fromisoformat(one["said_at"]) for one in await memories(api, **query)}


async def import_year(api: httpx.AsyncClient, learn: Learner, **settings: Any) -> dict[str, tuple[float, float]]:
    """Import a conversation that ended 100 days ago, which teaches a memory every 9 days.

    Return the importance of each memory, and how many days it was said before the newest message.
    """
    await begin(api, preset="decay", consolidation={"enabled": False}, **settings)
    said = [sent(n, 100 + 9 * (12 - n) / 2) for n in range(1, 13)]
    await append(api, said)
    taught = {}
    for number, name in enumerate(NAMES):
        importance = 0.39 + 0.06 * number
        await learn(LANTERN.format(name), f"m{2 * number + 1}", importance=importance)
        taught[LANTERN.format(name)] = (importance, 9 * (11 - 2 * number) / 2)
    return taught


def halve_slowly(importance: float, age_days: float) -> float:
    """The strength, halved for each whole half-life of 7 days, and then for the rest."""
    while age_days >= 7:
        importance, age_days = importance / 2, age_days - 7
    return float(importance * 2 ** (-age_days / 7))


async def test_an_imported_conversation_fades_until_its_end(
    api: httpx.AsyncClient, learn: Learner, database: Database, tenant: str
) -> None:
    taught = await import_year(api, learn)
    strengths = {text: halve_slowly(*values) for text, values in taught.items()}
    found = await memories(api)
    strongest_first = sorted((text for text in taught if strengths[text] >= 0.05), key=strengths.__getitem__)[::-1]
    assert [one["content"] for one in found] == strongest_first
    assert 0 < len(found) < len(taught)
    assert [one["score"] for one in found] == pytest.approx([strengths[text] for text in strongest_first])
    assert await dates(api) == {text: NOON - (100 + taught[text][1]) * DAY for text in strongest_first}
    assert await listed(api, archived=True) == taught.keys() - set(strongest_first)
    assert {one["created_at"][:10] for one in found} == {f"{NOON:%Y-%m-%d}"}
    assert await listed(api, day=f"{NOON:%Y-%m-%d}") == set(strongest_first), "they were learnt today"
    pages = files_of(await export(database, ref_of(tenant)))
    days = [f"{NOON - (100 + age_days) * DAY:%Y-%m-%d}.md" for _, age_days in taught.values()]
    assert [name for name in sorted(pages) if name[0] == "2"] == days


async def test_the_strongest_of_an_import_are_kept(api: httpx.AsyncClient, learn: Learner) -> None:
    await import_year(api, learn, memories={"max_memories": 2})
    assert await listed(api) == {LANTERN.format(name) for name in NAMES[-2:]}


async def test_recall_measures_ages_in_the_conversation(api: httpx.AsyncClient, learn: Learner) -> None:
    history = {"keep_messages": 1, "grow_messages": 0, "edges": "every_message"}
    await import_year(api, learn, history=history)
    await append(api, [sent(13, 99, "Where is the lantern of the pier?")])

    async def recalled() -> set[str]:
        texts = [one["text"] for one in (await context(api))["segments"] if one["name"] == "recalled"]
        return {name for name in NAMES if any(LANTERN.format(name) in text for text in texts)}

    assert await recalled() == {"old", "new"}
    await append(api, [message(14, "There."), message(15, "And where is the lantern of the pier now?")])
    assert await recalled() == set(), "100 days have passed"


async def test_no_memory_is_dated_in_the_future(api: httpx.AsyncClient, learn: Learner, clock: SteppedClock) -> None:
    await begin(api)
    await append(api, [sent(1, 0), sent(2, -400)])
    await learn(LANTERN.format("north"), "m2")
    clock.step(DAY_S)
    assert await dates(api) == {LANTERN.format("north"): NOON}
    assert [one["score"] for one in await memories(api)] == [pytest.approx(0.5 * 0.5 ** (1 / 7))]


@pytest.mark.parametrize("undo", ["delete", "restore", "cut off"])
async def test_a_memory_that_is_said_again_is_new_again(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock, undo: str
) -> None:
    await begin(api)
    await append(api, [sent(1, 40), sent(2, 30)])
    text = LANTERN.format("north")
    await learn(text, "m1", "m2")
    await checkpoint(api, "before")
    await append(api, [sent(3, 2)])
    assert (await learn(text, "m3")).outcome == "duplicate"
    assert await dates(api) == {text: NOON - 2 * DAY}
    await fork(api, "f", at_seq=2)
    assert await dates(api, under="/v1/chats/f") == {text: NOON - 30 * DAY}
    match undo:
        case "delete":
            await soft_delete(api, "m3")
        case "restore":
            await restore(api, "before")
        case "cut off":
            await cut_off(api, 3)
    assert await dates(api) == {text: NOON - 30 * DAY}
    await soft_delete(api, "m2")
    assert await dates(api) == {text: NOON - 40 * DAY}


async def test_a_faded_memory_that_is_said_again_is_back(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, preset="decay", consolidation={"enabled": False})
    await append(api, [sent(1, 100), sent(2, 0), sent(3, 0)])
    text = LANTERN.format("north")
    first = await learn(text, "m1")
    assert await listed(api, archived=True) == {text}
    assert await learn(text.upper(), "m2") == ("duplicate", first.memory_id)
    assert (await dates(api))[text] == NOON
    assert await listed(api, archived=True) == set()
    await soft_delete(api, "m2")
    assert await listed(api, archived=True) == {text}


async def test_a_faded_memory_has_no_new_text(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, preset="decay", consolidation={"enabled": False})
    await append(api, [sent(1, 100), sent(2, 0)])
    old, new = (f"Mira bought {number} green lanterns in Bergen." for number in (2, 3))
    await learn(old, "m1")
    assert (await learn(new, "m2")).outcome == "new"
    assert (await listed(api), await listed(api, archived=True)) == ({new}, {old})


async def test_what_was_brought_back_can_have_a_new_text(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, preset="decay", consolidation={"enabled": False})
    await append(api, [sent(1, 100), sent(2, 0)])
    old, new = (f"Mira bought {number} green lanterns in Bergen." for number in (2, 3))
    first = await learn(old, "m1")
    found = await learn.learn_together([old, new], "m2")
    assert found == [("duplicate", first.memory_id), ("supersedes", first.memory_id)]
    assert (await listed(api), await listed(api, archived=True)) == ({new}, set())


FADED = (
    "Die Straße  nach\u00a0Köln.",
    "Ｔhe ﬁsh is ４ years old.",
    "ΟΔΟΣ ΣΟΦΙΑΣ.",
    "日本語の猫。",
    "Nothing is like this.",
)
SAID_AGAIN = ("DIE STRASSE NACH KÖLN.", "The fish is 4\tyears old.", "οδος σοφιας.", " 日本語の猫。 ")
"""The first four of `FADED`, with differences that do not count."""


async def test_a_faded_memory_is_found_by_its_folded_text(api: httpx.AsyncClient, learn: Learner) -> None:
    await begin(api, preset="decay", consolidation={"enabled": False})
    await append(api, [sent(1, 100), sent(2, 0)])
    first = [(await learn(text, "m1")).memory_id for text in FADED]
    assert await listed(api, archived=True) == set(FADED)
    found = await learn.learn_together(SAID_AGAIN, "m2")
    assert found == [("duplicate", one) for one in first[:4]]
    assert await listed(api, archived=True) == {FADED[4]}


async def test_only_similar_memories_are_judged_to_learn(
    api: httpx.AsyncClient, learn: Learner, database: Database
) -> None:
    await begin(api, preset="decay", consolidation={"enabled": False})
    await append(api, [sent(1, 100), sent(2, 0)])
    for text in FADED:
        await learn(text, "m1")
    await learn(LANTERN.format("north"), "m2")
    async with watched(database) as seen:
        await learn(FADED[0], "m2")
    reads = [one for one in seen.logged if "SELECT s" in one.query or "WITH held" in one.query]
    async with database.raw() as connection:
        rows = [await connection.fetch(one.query, *one.args) for one in reads if "INSERT" not in one.query]
    read = {value for row in chain(*rows) for value in row.values() if isinstance(value, str)}
    assert read & {*FADED, LANTERN.format("north")} == {FADED[0]}


async def test_the_newer_text_of_a_memory_has_its_own_date(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, [sent(1, 40), sent(2, 30)])
    old, new = (f"Mira bought {number} green lanterns in Bergen." for number in (2, 3))
    await learn(new, "m2")
    clock.step(60)
    assert (await learn(old, "m1")).outcome == "supersedes", "the order of learning decides"
    assert await dates(api) == {old: NOON - 40 * DAY}


@pytest.mark.parametrize("insert", [False, True])
async def test_dates_follow_a_reimport_with_other_times(api: httpx.AsyncClient, learn: Learner, insert: bool) -> None:
    await begin(api)
    texts = ["One.", "Two.", "Three."]
    await append(api, [message(n, text) for n, text in enumerate(texts, start=1)])
    await learn(LANTERN.format("north"), "m2")
    assert await dates(api) == {LANTERN.format("north"): NOON}
    again = [sent(n, 50 - n, text) for n, text in enumerate(texts, start=1)]
    before = (await reimport(api, [sent(9, 60, "Before."), *again] if insert else again))["line"]
    assert before
    assert await dates(api) == {LANTERN.format("north"): NOON - 48 * DAY}


async def test_a_memory_from_before_keeps_its_date(
    api: httpx.AsyncClient, learn: Learner, database: Database, tenant: str
) -> None:
    await begin(api)
    await append(api, [sent(1, 40), sent(2, 30)])
    await learn(LANTERN.format("north"), "m1")
    async with database.raw() as connection:
        await connection.execute("UPDATE teachings SET said_at = NULL WHERE chat_key = $1", chat_key(tenant, "c"))
    assert await dates(api) == {LANTERN.format("north"): NOON}


@pytest.mark.parametrize("insert", [False, True])
async def test_a_memory_from_before_keeps_it_in_a_reimport(
    api: httpx.AsyncClient, learn: Learner, database: Database, tenant: str, insert: bool
) -> None:
    await begin(api)
    texts = ["One.", "Two.", "Three."]
    await append(api, [message(n, text) for n, text in enumerate(texts, start=1)])
    await learn(LANTERN.format("north"), "m2")
    async with database.raw() as connection:
        await connection.execute("UPDATE teachings SET said_at = NULL WHERE chat_key = $1", chat_key(tenant, "c"))
    again = [sent(n, 50 - n, text) for n, text in enumerate(texts, start=1)]
    await reimport(api, [sent(9, 60, "Before."), *again] if insert else again)
    assert await dates(api) == {LANTERN.format("north"): NOON}


async def test_what_a_person_wrote_is_dated_by_the_clock(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api)
    await append(api, [sent(1, 40)])
    clock.step(DAY_S)
    text = LANTERN.format("north")
    written = await write(api, text, importance=0.8)
    assert (written["said_at"], written["score"]) == (written["created_at"], 0.8)
    assert (await learn(text, "m1")).outcome == "duplicate"
    assert await dates(api) == {text: NOON + DAY}


async def test_a_user_s_list_measures_ages_at_the_present(
    api: httpx.AsyncClient, learn: Learner, clock: SteppedClock
) -> None:
    await begin(api, memories={"learn_scope": "user"})
    await append(api, [sent(1, 14), sent(2, 7)])
    await learn(LANTERN.format("north"), "m1", importance=0.8)
    clock.step(7 * DAY_S)
    assert [one["score"] for one in await memories(api)] == [pytest.approx(0.4)]
    assert [one["score"] for one in await memories(api, under=USER)] == [pytest.approx(0.1)]
    assert ok(await api.get(f"{CHAT}/state"), 200)["layers"]["memories"][0]["said_at"].startswith("2026-03-18T12:00")
