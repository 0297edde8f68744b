"""What a search finds, measured on LoCoMo.

    python -m bench.search --locomo locomo10.json [--vectors] [--long]

Each conversation is a chat of the running service, and each of its questions of the categories 1 to 4 is asked over
HTTP, once its messages are in the index; the messages that answer it are known. All settings are the defaults; a chat
has no `language`. With `--vectors`, the local embedding model gives vectors to all messages and queries. With `--long`,
only the speed is measured, in one chat of all messages, repeated up to 10,000.

Columns:
    R@10      percent of the evidence that is among the first 10 messages of the results, the mean of all questions
    nDCG@10   how far at the front it is, 100 if nothing else is before it
    words     R@10 if importance and recency added nothing
    in 2,000  percent of the questions whose evidence is all in a context of 2,000 tokens with `recall: auto` and the
              question as `query`. The chat keeps 2 messages, has no memos, and recall gets all but 200 of the tokens
    in 4,000  the same with 4,000 tokens
    default   the same with 4,000 tokens, of which recall gets 2,000, in a second chat of the conversation with the
              preset `memo` as it is
    ms        the median of the time of a search, and in parentheses its 95th percentile
"""

import argparse
import asyncio
import math
import tempfile
import time
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from random import Random
from statistics import mean, quantiles
from typing import Any, NamedTuple

import httpx

from bench.locomo import Conversation, Question, add_locomo_option, read_locomo
from bench.processes import say
from bench.stage import make_key, serving

BUDGETS = (2_000, 4_000)
RESERVED_TOKENS = 200
FIRST = 10
SETTINGS = {
    "memos": {"enabled": False},
    "history": {"keep_messages": 2, "grow_messages": 0},
}
DEFAULT_TOKENS, DEFAULT_RECALL_TOKENS = 4_000, 2_000
LONG = 10_000
"""The messages of the chat of `--long`."""

_BATCH = 500
_PATIENCE_S = 1_200
_SEARCHES = 300


class Asked(NamedTuple):
    """What a question found: shares of 1, and the time of the search in milliseconds.

    `in_contexts` is for each of BUDGETS, `in_default` for the preset `memo`: whether all evidence is in the context.
    """

    category: int
    recall: float
    ndcg: float
    recall_by_words: float
    in_contexts: Sequence[bool]
    in_default: bool
    ms: float


async def measure(client: httpx.AsyncClient, conversation: Conversation) -> list[Asked]:
    """Store a conversation and ask its questions. Raises httpx.HTTPStatusError."""
    chat = f"/v1/chats/{conversation.id}"
    await _store(client, chat, conversation.appendable(), SETTINGS)
    await _store(client, _by_default(chat), conversation.appendable(), {})
    await until_indexed(client, chat)
    await until_indexed(client, _by_default(chat))
    return [await _ask(client, chat, conversation.id, question) for question in conversation.questions]


def _by_default(chat: str) -> str:
    """Return the path of the chat with the same messages and the default settings."""
    return f"{chat}-default"


async def _store(
    client: httpx.AsyncClient, chat: str, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
) -> None:
    (await client.put(chat, json={"settings": settings})).raise_for_status()
    for first in range(0, len(messages), _BATCH):
        body = {"messages": messages[first : first + _BATCH]}
        (await client.post(f"{chat}/messages", json=body)).raise_for_status()


async def measure_long(client: httpx.AsyncClient, conversations: Sequence[Conversation]) -> str:
    """Store LONG messages in one chat, search them, and return the times. Raises httpx.HTTPStatusError."""
    chat = "/v1/chats/long"
    said = [message for conversation in conversations for message in conversation.appendable()]
    numbered = [{**said[at % len(said)], "id": f"m{at}"} for at in range(LONG)]
    questions = [question.text for conversation in conversations for question in conversation.questions]
    chosen = Random(1).sample(questions, _SEARCHES)
    await _store(client, chat, numbered, SETTINGS)
    await until_indexed(client, chat)
    times = quantiles([await _time_search(client, chat, question) for question in chosen], n=20)
    return f"{LONG:,} messages: p50 {times[9]:.1f} ms, p95 {times[18]:.1f} ms"


async def _time_search(client: httpx.AsyncClient, chat: str, query: str) -> float:
    """Return the milliseconds of a search for 10 messages."""
    begun = time.perf_counter()
    body = {"query": query, "limit": FIRST, "kinds": ["message"]}
    (await client.post(f"{chat}/memories/search", json=body)).raise_for_status()
    return 1000 * (time.perf_counter() - begun)


async def until_indexed(client: httpx.AsyncClient, chat: str) -> None:
    """Wait until nothing is due. Raises TimeoutError."""
    for _ in range(_PATIENCE_S):
        if not (await client.get(chat)).raise_for_status().json()["work"]["due"]:
            return
        await asyncio.sleep(1)
    raise TimeoutError(f"{chat} has work after {_PATIENCE_S} s")


async def _ask(client: httpx.AsyncClient, chat: str, prefix: str, question: Question) -> Asked:
    evidence = {f"{prefix}-{message_id}" for message_id in question.evidence}
    body = {"query": question.text, "limit": 100, "kinds": ["message"]}
    began_s = time.perf_counter()
    answer = (await client.post(f"{chat}/memories/search", json=body)).raise_for_status().json()
    ms = 1000 * (time.perf_counter() - began_s)
    hits = answer["hits"]
    by_words = sorted(hits, key=lambda hit: -sum(hit["parts"][part] for part in ("vector", "text", "neighbours")))
    return Asked(
        question.category,
        find_share(hits, evidence),
        rate_order(hits, evidence),
        find_share(by_words, evidence),
        [
            await _is_in_context(client, chat, question.text, evidence, budget, budget - RESERVED_TOKENS)
            for budget in BUDGETS
        ],
        await _is_in_context(client, _by_default(chat), question.text, evidence, DEFAULT_TOKENS, DEFAULT_RECALL_TOKENS),
        ms,
    )


def find_share(hits: Sequence[Any], evidence: Set[str]) -> float:
    """Return how much of the evidence is among the first results."""
    return len(evidence & {hit["id"] for hit in hits[:FIRST]}) / len(evidence)


def rate_order(hits: Sequence[Any], evidence: Set[str]) -> float:
    """Return the normalised discounted cumulative gain of the first results."""
    gain = sum(1 / math.log2(at + 2) for at, hit in enumerate(hits[:FIRST]) if hit["id"] in evidence)
    return gain / sum(1 / math.log2(at + 2) for at in range(min(FIRST, len(evidence))))


async def _is_in_context(
    client: httpx.AsyncClient, chat: str, query: str, evidence: Set[str], max_tokens: int, recall_tokens: int
) -> bool:
    options: dict[str, str | int] = {
        "query": query,
        "recall": "auto",
        "max_tokens": max_tokens,
        "recall_tokens": recall_tokens,
    }
    answer = (await client.get(f"{chat}/context", params=options)).raise_for_status().json()
    sources = {source for segment in answer["segments"] for source in segment["sources"]}
    return all(f"message:{message_id}" in sources for message_id in evidence)


def write_table(asked: Sequence[Asked]) -> str:
    """Return the results as Markdown, by category and together."""
    rows = [(str(category), [one for one in asked if one.category == category]) for category in range(1, 5)]
    lines = [
        "| category | questions | R@10 | nDCG@10 | words | in 2,000 | in 4,000 | default | ms |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, of in [*rows, ("all", list(asked))]:
        times = quantiles([one.ms for one in of], n=20)
        shares = [
            mean(one.recall for one in of),
            mean(one.ndcg for one in of),
            mean(one.recall_by_words for one in of),
            *(mean(one.in_contexts[at] for one in of) for at in range(len(BUDGETS))),
            mean(one.in_default for one in of),
        ]
        figures = " | ".join(f"{100 * share:.1f}" for share in shares)
        lines.append(f"| {name} | {len(of):,} | {figures} | {times[9]:.1f} ({times[18]:.1f}) |")
    return "\n".join(lines)


async def run(path: Path, *, vectors: bool, long: bool) -> str:
    """Serve the conversations, ask the questions, and return the table or the times."""
    asked: list[Asked] = []
    environment = {"MEMOBOOK_EMBEDDINGS_BASE_URL": "local"} if vectors else {}
    with tempfile.TemporaryDirectory() as directory:
        async with serving(Path(directory), environment) as stack:
            headers = {"Authorization": f"Bearer {await make_key(stack)}"}
            async with httpx.AsyncClient(base_url=stack.url, headers=headers, timeout=60) as client:
                if long:
                    return await measure_long(client, list(read_locomo(path)))
                for conversation in read_locomo(path):
                    asked += await measure(client, conversation)
                    say(f"{conversation.id}: {len(asked)} questions so far")
    return write_table(asked)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.search", description="What a search finds, on LoCoMo")
    add_locomo_option(parser)
    parser.add_argument("--vectors", action="store_true", help="compare vectors of the local embedding model, too")
    parser.add_argument("--long", action="store_true", help=f"only the speed in a chat of {LONG:,} messages")
    options = parser.parse_args()
    say(asyncio.run(run(options.locomo, vectors=options.vectors, long=options.long)))


if __name__ == "__main__":
    main()
