"""Search by meaning, with a scripted model that knows three subjects."""

import httpx

from app.embeddings.scale import UNRELATED
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.scripted_embeddings import embeds
from tests.scripted_model import Reply, Request, refuses
from tests.search.finding import message
from tests.talk import CHAT, Json, ok

SUBJECTS = (("ship", "vessel", "ferry"), ("cat", "kitten", "purrs"), ("bread", "loaf", "oven"))
"""Words that the scripted model gives the same meaning."""


def mean(request: Request) -> Reply:
    """A vector with the share of each subject, and of all other words; sentences of the scale have other subjects."""
    vectors = []
    for text in request["input"]:
        if text in UNRELATED:
            axis = UNRELATED.index(text) % 4
            vectors.append([float(axis == at) for at in range(4)])
            continue
        shares = [float(sum(word in text.lower() for word in words)) for words in SUBJECTS]
        vectors.append([*shares, 0.2])
    return embeds(vectors, tokens=1)


def refuse_bombs(request: Request) -> Reply:
    """What `mean` answers, unless a text is about a bomb."""
    return refuses(400) if any("bomb" in text for text in request["input"]) else mean(request)


def rest(first: int, last: int) -> list[Json]:
    return [message(n, f"We talk on, day {n}.") for n in range(first, last + 1)]


async def search(api: httpx.AsyncClient, query: str, **more: object) -> Json:
    return ok(await api.post(f"{CHAT}/memories/search", json={"query": query, **more}), 200)


async def find_best(api: httpx.AsyncClient, query: str) -> str:
    """The best result of a search that compares meanings."""
    answer = await search(api, query)
    assert answer["mode"] == "hybrid"
    return str(answer["hits"][0]["id"])


async def count_vectors(database: Database, tenant: str, chat: str = "c") -> int:
    async with database.raw() as connection:
        query = "SELECT count(*) FROM vectors WHERE chat_key = $1"
        return int(await connection.fetchval(query, chat_key(tenant, chat)))
