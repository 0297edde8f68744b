"""Each operation, with requests that its OpenAPI document allows and some that it does not, against the real service.

Schemathesis makes the requests, and compares each answer with the document: its status, its media type, its headers and
its body. `make check-long` runs this file; its name keeps it out of `make check`.
"""

import asyncio
import os
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.path_parameters import CHARACTER, SCHEMA, fill_path
from tests.layers.samples import SAMPLES, list_settings
from tests.soak.stack import ADMIN_KEY, Stack, open_directory
from tests.talk import append, ok, put, talk

EXAMPLES = int(os.environ.get("TESTS_EXAMPLES", "50"))
SEED = int(os.environ.get("TESTS_SEED", "0"))
MOST_ATTEMPTS = 8
"""How often an operation gets EXAMPLES examples, with another seed each time, until one of them succeeds.

The schema cannot state all rules, so few of its examples are accepted by some operations.
"""
Operation = APIOperation[Any, Any, Any, Any]

SHORT_HISTORY = {"history": {"keep_messages": 4, "grow_messages": 4, "max_messages": 9}}
"""Settings under which a fold of the summary becomes due, even without a worker."""

MAX_UNREACHED = 3
"""So many operations may answer only 401 and 403."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]

for media_type in ("application/jsonl", "application/zip"):  # an import takes any bytes, and refuses most
    schemathesis.serializer.alias(media_type, "application/octet-stream")

LOADED = schemathesis.openapi.from_dict(SCHEMA, config=SchemathesisConfig())
OPERATIONS: list[Operation] = [result.ok() for result in LOADED.get_all_operations() if isinstance(result, Ok)]
STATUSES: defaultdict[str, Counter[int]] = defaultdict(Counter)
"""How often each operation answered with which status."""


@pytest.fixture(scope="module")
async def stack() -> AsyncIterator[Stack]:
    with open_directory() as path:
        async with Stack(path) as running:
            for worker in running.workers:  # work that is done is deleted, and could not be asked for
                await worker.end(signal.SIGTERM)
            yield running


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with httpx.AsyncClient(base_url=url_of(stack), headers=headers, trust_env=False) as made:
        yield made


def url_of(stack: Stack) -> str:
    return f"http://127.0.0.1:{stack.ports[0]}"


async def existing(client: httpx.AsyncClient, operation: Operation) -> dict[str, str]:
    """Fill the chat `c`, and return values for the parameters of an operation's path that are there."""
    await client.delete("/v1/chats/c")
    await put(client, user_id="mira", characters=[{"name": CHARACTER}], settings=list_settings())
    await append(client, talk(1, 16))
    ok(await client.post("/v1/chats/c/checkpoints", json={"name": "here"}), 201)
    for sample in SAMPLES.values():
        await sample.write(client)
    await put(client, status=200, settings=SHORT_HISTORY)
    await append(client, talk(17, 32))
    (line,) = ok(await client.get("/v1/chats/c/lines"), 200)["items"]
    ok(await client.post("/v1/chats/c/checkpoints/here/restore"), 201)
    ok(await client.post(f"/v1/chats/c/lines/{line['line']}/switch"), 200)  # the newest line can be deleted now
    key = ok(await client.post("/v1/keys", json={"tenant": "default", "scopes": ["read"]}), 201)
    known = {"chat_id": "c", "user_id": "mira", "message_id": "m1", "name": "here", "tool": "save_memory"}
    known["key_id"] = key["id"]
    values = {}
    raw: Any = operation.definition.raw
    filled = await fill_path(client, operation.path, raw, known)
    template, real = operation.path.split("/"), filled.split("/")
    for name, value in zip(template, real, strict=True):
        if name.startswith("{"):
            values[name.strip("{}").partition(":")[0]] = value
    return values


@pytest.mark.parametrize("operation", [pytest.param(one, id=one.label) for one in OPERATIONS])
async def test_the_answers_conform(stack: Stack, client: httpx.AsyncClient, operation: Operation) -> None:
    values = await existing(client, operation)
    session = requests.Session()
    session.trust_env = False
    allowed = operation.as_strategy(path_parameters=values)
    elsewhere = operation.as_strategy()
    wrong = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(allowed, allowed, allowed, elsewhere, wrong))
    def send(case: schemathesis.Case[Any]) -> None:
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        answer = case.call_and_validate(
            base_url=url_of(stack), session=session, headers=headers, checks=CHECKS, timeout=30
        )
        STATUSES[operation.label][answer.status_code] += 1

    for attempt in range(MOST_ATTEMPTS):
        await asyncio.to_thread(seed(SEED + attempt)(send))
        if has_succeeded(operation.label):
            break


def has_succeeded(label: str) -> bool:
    return any(200 <= status < 300 for status in STATUSES[label])


def test_the_operations_are_reached() -> None:
    assert len(STATUSES) == len(OPERATIONS) == sum(map(len, SCHEMA["paths"].values()))
    unreached = [label for label, statuses in STATUSES.items() if set(statuses) <= {401, 403}]
    assert len(unreached) <= MAX_UNREACHED, unreached
    assert [label for label in STATUSES if not has_succeeded(label)] == []
