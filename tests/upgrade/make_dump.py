"""Makes a dump and the answers recorded beside it: `python -m tests.upgrade.make_dump`.

It runs with the code of the commit that added it, not with today's, and is kept to show how the dump was made. It plays
`scenario`, writes all rows, loads them into another database as a test does, and records what the service answers about
them there.
"""

import asyncio
import hashlib
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg

from app.kit.clock import SteppedClock
from app.local.directory import DataDirectory
from app.local.running import Urls
from app.local.servers import running_servers
from app.migrate import SCRIPTS
from tests.golden.script import Story, read_story
from tests.scripted_model import ScriptedModel
from tests.upgrade.answers import list_lines, read_contexts, read_memory, write_json
from tests.upgrade.contents import list_missing
from tests.upgrade.dump import write_dump
from tests.upgrade.recorded import CONTEXTS, DUMP, KEYS, MEMORY, load, upgrade
from tests.upgrade.scenario import BEGINS_AT, Model, Scenario
from tests.upgrade.service import connected, make_database, open_service

_KEY = "INSERT INTO keys VALUES ($1, $2, $3, $4, $5, $6, $7)"

_LEASE = """
    UPDATE work SET attempts = 1, lease = '00000000-0000-7000-8000-000000000000', leased_until = '2020-01-01T00:00Z'
    WHERE work_id = (SELECT work_id FROM work WHERE failed_at IS NULL AND attempts = 0 AND run_after < 'infinity'
        ORDER BY chat_key, line_id, layer, key LIMIT 1)"""
"""The state in which a killed worker leaves its work; leases end by the database's clock, so this one is long past."""


async def make() -> None:
    """Write the three files."""
    with tempfile.TemporaryDirectory(prefix="mb-") as path:
        directory = DataDirectory(Path(path) / "data")
        directory.make()
        async with running_servers(
            directory,
            database_url=None,
            redis_url=None,
            postgres_settings={"fsync": "off", "synchronous_commit": "off"},
            say=lambda _line: None,
        ) as servers:
            at = await _dump(servers, read_story())
            await _record(servers, at)


async def _dump(servers: Urls, story: Story) -> str:
    """Write the dump; return the service's time at its end."""
    _, url = await make_database(servers)
    await upgrade(url)
    async with connected(url) as connection:
        await _insert_keys(connection)
    clock, model = SteppedClock(BEGINS_AT), Model(story)
    async with ScriptedModel() as scripted:
        scripted.otherwise = model
        async with open_service(url, servers.redis_url, clock, KEYS, scripted.base_url) as service:
            await Scenario(service, model, story).run()
    async with connected(url) as connection:
        await connection.execute(_LEASE)
        await connection.execute("UPDATE model_usage SET wait_ms = 40 * calls")
        missing = await list_missing(connection)
        assert not missing, "\n".join(missing)
        migrations = len(list((SCRIPTS / "versions").glob("*.py")))
        DUMP.write_text(await write_dump(connection, migrations), encoding="utf-8")
    return clock().isoformat()


async def _record(servers: Urls, at: str) -> None:
    """Write what the service answers about a database that the dump was loaded into."""
    _, url = await make_database(servers)
    await load(url)
    await upgrade(url)
    async with connected(url) as connection:
        chats = await connection.fetch("SELECT DISTINCT tenant, chat_id FROM chats ORDER BY 1, 2")
    contexts: dict[str, Any] = {tenant: {} for tenant in KEYS}
    memory: dict[str, Any] = {tenant: {} for tenant in KEYS}
    async with open_service(url, servers.redis_url, SteppedClock(datetime.fromisoformat(at)), KEYS) as service:
        for tenant, chat_id in chats:
            api = service.apis[tenant]
            lines = await list_lines(api, chat_id)
            contexts[tenant][chat_id] = await read_contexts(api, chat_id, lines)
            memory[tenant][chat_id] = await read_memory(api, chat_id)
    _write(CONTEXTS, {"at": at, "chats": contexts})
    _write(MEMORY, {"at": at, "chats": memory})


async def _insert_keys(connection: asyncpg.Connection) -> None:
    """Insert keys that are not secret: one for each tenant, one that is revoked, and the environment's."""
    environment = {"default": "not-a-real-environment-key-000000"}
    revoked = {"acme": "mb_00000000cccc_" + "0" * 64}
    for keys, scopes in ((KEYS, ["read", "write"]), (revoked, ["read"]), (environment, ["read", "write", "admin"])):
        for tenant, text in keys.items():
            key_id = text.split("_")[1] if text.startswith("mb_") else "00000000dddd"
            secret_hash = hashlib.sha256(text.encode()).digest()
            revoked_at = BEGINS_AT if keys is revoked else None
            await connection.execute(
                _KEY, key_id, tenant, scopes, secret_hash, keys is environment, BEGINS_AT, revoked_at
            )
    await connection.execute("INSERT INTO secrets VALUES ('jwt', $1)", b"not a secret, but 32 bytes long.")


def _write(path: Path, value: Any) -> None:
    path.write_text(write_json(value) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(make())
