"""A search over a user's chats reads what is known above the chats once, and finds what the chats see."""

import random
from typing import Any

import httpx
import pytest

from app.kit.db import Database, list_tables
from app.kit.ids import user_key
from app.kit.owners import NO_LINE
from app.passages.keys import list_wanted
from app.passages.words import list_patterns
from app.search.service import statements_in_use
from tests.facts.asking import KAI, USER, set_fact
from tests.memories.asking import Learner, write
from tests.search.finding import message
from tests.search.test_plans import count_read, explain_prepared
from tests.statements import analysed, clear_statistics
from tests.talk import Json, append, ok, put

FORMER: Json = {"name": "Rinako"}
RIN: Json = {"name": "Rin"}
CHATS = {"a": [KAI], "b": [KAI, RIN], "d": [], "e": [FORMER]}
"""The chats of the user mira, with their characters. In the chat `b`, Rin was Rinako before."""

WIDE = [USER, f"{USER}/characters/Kai", f"{USER}/characters/Rin", f"{USER}/characters/Rinako", "/v1"]
KEYS = ["lamp", "boat"]


async def begin(api: httpx.AsyncClient) -> None:
    for chat_id, characters in CHATS.items():
        given = [FORMER if one is RIN else one for one in characters]
        await put(api, chat_id, user_id="mira", characters=given, settings={"search": {"across_chats": True}})
        await append(api, [message(n, "We sail on.") for n in range(1, 4)], chat_id=chat_id)
    ok(await api.post("/v1/chats/b/characters/Rinako/rename", json={"name": "Rin"}), 200)


async def search(api: httpx.AsyncClient, under: str, **more: Any) -> dict[str, Json]:
    """The memories and facts that a search finds, by source."""
    body = {"query": "ferry", "limit": 100, "kinds": ["memory", "fact"], **more}
    hits = ok(await api.post(f"{under}/memories/search", json=body), 200)["hits"]
    return {f"{hit['kind']}:{hit['id']}": hit for hit in hits}


async def is_as_the_chats_see_it(api: httpx.AsyncClient, **more: Any) -> None:
    """Whether a search over the chats finds what a search of at least one of them finds, as the newest of them does."""
    seen: dict[str, list[Json]] = {}
    for chat_id, characters in CHATS.items():
        if "character" not in more or more["character"] in [one["name"] for one in characters]:
            for source, hit in (await search(api, f"/v1/chats/{chat_id}", **more)).items():
                seen.setdefault(source, []).append(hit)
    found = await search(api, USER, **more)
    assert {source for source, hit in found.items() if hit["chat_id"] is not None} == set(seen)
    for source, hits in seen.items():
        last_seq = max(hit["last_seq"] or 0 for hit in hits)
        same = [
            (hit["chat_id"], hit["text"], hit["first_seq"], hit["last_seq"], hit["sources"])
            for hit in hits
            if (hit["last_seq"] or 0) == last_seq
        ]
        hit = found[source]
        assert (hit["chat_id"], hit["text"], hit["first_seq"], hit["last_seq"], hit["sources"]) in same


async def act(api: httpx.AsyncClient, learn: Learner, chance: random.Random, number: int) -> None:
    """Do one thing in one scope that changes what chats see."""
    under = chance.choice([*(f"/v1/chats/{chat_id}" for chat_id in CHATS), *WIDE])
    chat_id = chance.choice(list(CHATS))
    known = await search(api, chance.choice([f"/v1/chats/{chat_id}", USER]), kinds=["memory"])
    memory_id = chance.choice([hit["id"] for hit in known.values()] or ["01900000-0000-7000-8000-000000000000"])
    match chance.randrange(9):
        case 0 | 1:
            answer = await api.put(f"{under}/facts/{chance.choice(KEYS)}", json={"value": f"The ferry, fact {number}."})
            assert answer.status_code in {200, 201}
        case 2:
            await api.delete(f"{under}/facts/{chance.choice(KEYS)}")
        case 3:
            await write(api, f"The ferry {number} has {number} masts.", under=under)
        case 4:
            given = chance.choice([{"content": f"The ferry {number}, edited."}, {"archived": True}, {"pinned": True}])
            answer = await api.patch(f"{under}/memories/{memory_id}", json=given)
            assert answer.status_code in {200, 404, 409}
        case 5:
            await api.delete(f"{under}/memories/{memory_id}")
        case 6 | 7 | 8:
            scope = chance.choice(["chat", "character", "user", "global"])
            await put(
                api,
                chat_id,
                status=200,
                settings={"search": {"across_chats": True}, "memories": {"learn_scope": scope}},
            )
            said = chance.choice(["The ferry left at dawn.", f"A ferry number {number} came with {number} horses."])
            await learn(said, f"m{chance.randrange(1, 4)}", chat_id=chat_id)


@pytest.mark.parametrize("seed", range(4))
async def test_scopes_of_a_user_are_as_the_chats_see_them(api: httpx.AsyncClient, learn: Learner, seed: int) -> None:
    await begin(api)
    chance = random.Random(seed)
    for number in range(40):
        await act(api, learn, chance, number)
        if number % 8 == 7:
            await is_as_the_chats_see_it(api)
            await is_as_the_chats_see_it(api, character=chance.choice(["Kai", "Rin", "Rinako"]))


async def test_a_newer_fact_under_a_former_name_hides_one(api: httpx.AsyncClient) -> None:
    await begin(api)
    for name in ("Rin", "Rinako"):
        await set_fact(api, "lamp", f"The ferry has one of {name}.", under=f"{USER}/characters/{name}")
    assert {hit["text"] for hit in (await search(api, USER)).values()} == {"lamp: The ferry has one of Rinako."}
    await is_as_the_chats_see_it(api)


ADD_OTHERS = f"""
    INSERT INTO chats (chat_key, line_id, tenant, chat_id, user_id, user_key, line_created_at, created_at,
        last_active_at)
    SELECT gen_random_uuid(), gen_random_uuid(), 'others', 'chat' || n, 'user' || n, gen_random_uuid(), now(), now(),
        now()
    FROM generate_series(1, 3000) AS n;
    INSERT INTO statements (owner_key, line_id, statement_id, kind, key, content, importance, origin, learnt_at)
    SELECT gen_random_uuid(), '{NO_LINE}', gen_random_uuid(), 'memory', 'memory ' || n, 'text ' || n, 0.5, 'person',
        now()
    FROM generate_series(1, 3000) AS n"""


async def test_a_scope_of_a_user_is_read_once(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    """Among the chats and memories of other users; of tables with few rows, the planner reads all of them."""
    chats, memories = 20, 30
    tables = [table.name for table in list_tables()]
    for number in range(memories):
        await write(api, f"Kai knows the harbour number {number}.", under=USER)
    for number in range(chats):
        await put(api, f"c{number}", user_id="mira", characters=[KAI], settings={"search": {"across_chats": True}})
    async with database.raw() as connection:
        now = await connection.fetchval("SELECT now()")
        given = (
            user_key(tenant, "mira"),
            now,
            *[None] * 6,
            list_patterns(["harbour"]),
            list_wanted(["harbour"]),
            False,
        )
        adding = connection.transaction()
        await adding.start()
        try:
            await connection.execute(ADD_OTHERS)
            await clear_statistics(connection, *tables)
            plans = [await explain_prepared(connection, statements_in_use().of_user, given)]
            async with analysed(connection, *tables):
                plans.append(await explain_prepared(connection, statements_in_use().of_user, given))
        finally:
            await adding.rollback()
    for plan in plans:
        assert plan["Actual Rows"] == memories
        assert memories <= count_read(plan, "statements") <= 2 * memories
        assert count_read(plan, "chats") <= 10 * chats + 4 * memories
