"""memobook reindex: use the configured embedding model from now on, and give all messages vectors.

With `--from-markdown`, it brings what a person changed on the pages of a vault into the chat instead.
"""

import argparse
import asyncio
from pathlib import Path

from app.chats.chat_lock import ChatRef
from app.commands.arguments import add_data, add_tenant, find_database_url, name_chat, say
from app.commands.database import naming_database
from app.embeddings.configured import make_embedder
from app.embeddings.recorded import RecordedModel
from app.embeddings.service import make_current
from app.kit.clock import system_clock
from app.kit.job_context import TextEmbedder
from app.kit.llm.answer import ModelError
from app.kit.settings import PREFIX, SettingsError, load_settings
from app.passages.reindex import embed_all
from app.pipeline import open_database
from app.registry import LAYERS
from app.transfer.vault_file import reindex_vault
from app.vault.reindex import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the database, and those for a vault."""
    parser.add_argument(
        "--from-markdown",
        type=Path,
        metavar="PATH",
        help="bring changes of the Markdown of a vault, a folder or a zip, into its chat",
    )
    parser.add_argument("--chat-id", metavar="CHAT", help="id of the chat, with --from-markdown")
    parser.add_argument("--dry-run", action="store_true", help="only list the changes, with --from-markdown")
    add_tenant(parser)
    add_data(parser)


def run(options: argparse.Namespace) -> int:
    """Record the configured model as the one whose vectors are compared, and make the vectors of all chats due."""
    if options.from_markdown is not None:
        return _run_from_markdown(options)
    if options.chat_id is not None or options.dry_run:
        raise SettingsError("--chat-id and --dry-run need --from-markdown")
    embedder = make_embedder(load_settings())
    if embedder is None:
        raise SettingsError(f"{PREFIX}EMBEDDINGS_BASE_URL is not set")
    try:
        with naming_database():
            model, chats = asyncio.run(_record(find_database_url(options.data), embedder))
    except ModelError as error:
        raise SettingsError(f"{PREFIX}EMBEDDINGS_BASE_URL: {error.reason}") from None
    say(
        f"From now on, vectors are of {model.name} ({model.dimension} dimensions). Restart the API and the workers: "
        f"the workers make the vectors of {chats:,} chats in the background."
    )
    return 0


async def _record(url: str, embedder: TextEmbedder) -> tuple[RecordedModel, int]:
    database = open_database(url, LAYERS, clock=system_clock, settle_s=0, notify=lambda: None, pool_size=2)
    try:
        return await make_current(database, embedder, system_clock), await embed_all(database, system_clock)
    finally:
        await embedder.aclose()
        await database.close()


def _run_from_markdown(options: argparse.Namespace) -> int:
    """Make the changes in the chat, and print what was skipped and how many were made."""
    if options.chat_id is None:
        raise SettingsError("--from-markdown needs --chat-id")
    ref, path = name_chat(options.tenant, options.chat_id), options.from_markdown
    try:
        outcome = asyncio.run(_reindex(find_database_url(options.data), ref, path, dry_run=options.dry_run))
    except OSError as error:
        problem = error.strerror or "must be a file or a folder"  # Python's own error, of a seek
        raise SettingsError(f"cannot read {path}: {problem}") from None
    for line in outcome.made if options.dry_run else ():
        say(line)
    for line in outcome.skipped:
        say(f"skipped: {line}")
    numbers = (
        f"{outcome.edited} edited, {outcome.added} added, {outcome.removed} removed, {len(outcome.skipped)} skipped"
    )
    say(f"{options.chat_id}: {numbers}{' (dry run: nothing was changed)' if options.dry_run else ''}")
    return 0


async def _reindex(url: str, ref: ChatRef, path: Path, *, dry_run: bool) -> Outcome:
    """Make the changes. No worker is woken: workers look for due work themselves."""
    settings = load_settings()
    database = open_database(
        url,
        LAYERS,
        clock=system_clock,
        settle_s=settings.settle_s,
        notify=lambda: None,
        pool_size=2,
        with_vectors=settings.embeddings_base_url is not None,
    )
    try:
        return await reindex_vault(database, ref, path, system_clock(), dry_run=dry_run)
    finally:
        await database.close()
