"""memobook keys: create, list and revoke keys."""

import argparse
import asyncio

from app.commands.arguments import add_data, find_database_url, say
from app.keys.service import create_key, list_keys, revoke_key
from app.kit.auth import DEFAULT_TENANT
from app.kit.clock import system_clock
from app.kit.db import Database, DbSession

MAX_LISTED = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    actions = parser.add_subparsers(required=True, dest="action", metavar="ACTION")
    create = actions.add_parser("create", help="create a key and print it; it cannot be shown again")
    create.add_argument(
        "--tenant", default=DEFAULT_TENANT, help="tenant that the key gives access to (default: %(default)s)"
    )
    create.add_argument("--scopes", default="read,write", help="one or more of read,write,admin (default: %(default)s)")
    create.add_argument(
        "--user-scope",
        action="store_true",
        help="browser tokens of this key that are limited to a chat also read and change what is known of its user and "
        "its tenant",
    )
    listing = actions.add_parser("list", help="list all keys, without their secrets")
    revoke = actions.add_parser("revoke", help="revoke a key and the tokens created with it")
    revoke.add_argument("key_id", metavar="ID", help="id of the key: the part between mb_ and the next _")
    for action in (create, listing, revoke):
        add_data(action)


def run(options: argparse.Namespace) -> int:
    """Run the action in one transaction."""
    asyncio.run(_run(options))
    return 0


async def _run(options: argparse.Namespace) -> None:
    database = Database(find_database_url(options.data), pool_size=2)
    try:
        async with database.unit_of_work() as db_session:
            lines = await _do(db_session, options)
    finally:
        await database.close()
    for line in lines:  # after the commit, so that a key that is printed is valid
        say(line)


async def _do(db_session: DbSession, options: argparse.Namespace) -> list[str]:
    """Run the action and return the lines to print."""
    if options.action == "create":
        scopes = [scope.strip() for scope in options.scopes.split(",")]
        created = await create_key(db_session, options.tenant, scopes, system_clock(), user_scope=options.user_scope)
        return [created.text]
    if options.action == "list":
        return [
            f"{key.key_id}  {key.tenant}  {','.join(key.scopes)}  {key.created_at:%Y-%m-%d %H:%M}"
            f"{'  user-scope' if key.user_scope else ''}"
            for key in await list_keys(db_session, limit=MAX_LISTED)
        ]
    await revoke_key(db_session, options.key_id, system_clock())
    return []
