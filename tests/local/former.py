"""Data directories as former versions made them, with LC_CTYPE C."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from app.local.account import Account, choose_account
from app.local.binaries import postgres_program
from app.local.children import Child
from app.local.command import Command, run_to_end
from app.local.directory import DataDirectory, write_private
from app.local.leftovers import PidFile
from app.local.postgres import Postgres
from app.local.sockets import socket_base, socket_directory
from tests.local.conftest import FAST

FORMER_INITDB = ("--encoding", "UTF8", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C")


LETTERS = """
    SELECT show_trgm('日本語の猫') <> '{}', similarity('Łódź', 'łódź'), lower('ÄÖÜ Ł'),
        to_tsvector('simple', 'Übung—café')::text,
        (SELECT string_agg(word, ' ' ORDER BY word) FROM unnest(ARRAY['a', 'ä', 'Z', '日', 'z', 'Ł']) AS word)
"""
KNOWN = (True, 1, "äöü ł", "'café':2 'übung':1", "Z a z ä Ł 日")
"""The answer to `LETTERS` of a database that knows the letters of all languages and orders texts by their bytes."""


@asynccontextmanager
async def former_postgres(data: Path, initdb: Sequence[str] = FORMER_INITDB) -> AsyncGenerator[Postgres]:
    """PostgreSQL as a former version runs it, on files that `initdb` makes with these options if `data` has none."""
    directory = DataDirectory(data)
    directory.make()
    account = choose_account(directory.postgres, [data, socket_base()])
    with socket_directory(directory.run / "sockets", account) as sockets:
        if not directory.postgres.exists():
            await _initialise(directory, account, sockets / "password", initdb)
        postgres = Postgres(directory, account, sockets, FAST)
        child = Child(postgres.command, pid_file=PidFile.of(directory, "postgres"), say=lambda _: None)
        async with child.running(postgres.accepts):
            await postgres.make_database()
            yield postgres


async def _initialise(directory: DataDirectory, account: Account, password: Path, options: Sequence[str]) -> None:
    directory.postgres.mkdir()
    account.take(directory.postgres)
    write_private(password, directory.password("postgres"))
    account.take(password)
    initdb = Command(
        name="initdb",
        arguments=(
            *(str(postgres_program("initdb")), "--pgdata", str(directory.postgres), "--username", "postgres"),
            *("--auth", "scram-sha-256", "--pwfile", str(password), "--no-sync", *options),
        ),
        environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        log=directory.logs / "initdb.log",
        account=account,
    )
    assert await run_to_end(initdb) == 0


async def dump_all(data: Path) -> list[str]:
    """Roles with passwords, settings, permissions, schema and rows of all databases of the server that runs on `data`.

    Without the statements that create the databases, which name the LC_CTYPE, and without the hash of the password of
    `memobook`, which each start computes again. A list in a check is written in one of two ways that mean the same: a
    restore changes it.
    """
    process = await asyncio.create_subprocess_exec(
        *(str(postgres_program("pg_dumpall")), "--restrict-key=key"),
        env={
            **os.environ,
            "PGHOST": (data / "run/sockets").read_text(),
            "PGPORT": "5432",
            "PGUSER": "postgres",
            "PGPASSWORD": (data / "postgres.password").read_text(),
        },
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    lines = re.sub(r"^CREATE DATABASE .*$|^ALTER ROLE memobook .*$", "", out.decode(), flags=re.MULTILINE).split("\n")
    return [re.sub(r"::(character varying|text)(\[\])?|[()]", "", line) if "ARRAY[" in line else line for line in lines]
