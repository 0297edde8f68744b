"""memobook reindex: make the vectors of the configured model for the texts of all current lines, then use this model.

With `--from-markdown`, it makes no vectors: it applies to the chat what a person has changed on the pages of its vault.
"""

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from app.chats.chat_lock import ChatRef
from app.commands.arguments import add_data, add_tenant, find_database_url, name_chat, say
from app.commands.database import naming_database
from app.embeddings.configured import make_embedder
from app.embeddings.service import make_current, record_coming
from app.kit.clock import system_clock
from app.kit.job_context import TextEmbedder
from app.kit.llm.answer import ModelError
from app.kit.settings import PREFIX, SettingsError, load_settings
from app.passages.reindex import Counts, Reindexer
from app.pipeline import open_database
from app.registry import LAYERS
from app.transfer.vault_file import reindex_vault
from app.vault.reindex import Outcome

_REPORT_S = 5.0
"""The time between two lines about the progress."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the database, and those for a vault."""
    parser.add_argument(
        "--from-markdown",
        type=Path,
        metavar="PATH",
        help="bring changes of the Markdown of a vault (its folder or its zip) into its chat",
    )
    parser.add_argument("--chat-id", metavar="CHAT", help="id of the chat, with --from-markdown")
    parser.add_argument("--dry-run", action="store_true", help="only list the changes, with --from-markdown")
    add_tenant(parser)
    add_data(parser)


def run(options: argparse.Namespace) -> int:
    """Make the missing vectors of the configured model, and make it the current one.

    If a run is interrupted, the next one continues it.
    """
    if options.from_markdown is not None:
        return _run_from_markdown(options)
    if options.chat_id is not None or options.dry_run:
        raise SettingsError("--chat-id and --dry-run need --from-markdown")
    settings = load_settings()
    embedder = make_embedder(settings)
    if embedder is None:
        raise SettingsError(f"{PREFIX}EMBEDDINGS_BASE_URL is not set")
    try:
        with naming_database():
            asyncio.run(_reindex(find_database_url(options.data), embedder, settings.embeddings_concurrency))
    except ModelError as error:
        raise SettingsError(f"{PREFIX}EMBEDDINGS_BASE_URL: {error.reason}") from None
    return 0


async def _reindex(url: str, embedder: TextEmbedder, concurrency: int) -> None:
    database = open_database(
        url, LAYERS, clock=system_clock, settle_s=0, notify=lambda: None, pool_size=concurrency + 1
    )
    try:
        model, is_current = await record_coming(database, embedder, system_clock)
        name = f"{model.name} ({model.dimension} dimensions)"
        reindexer = Reindexer(
            database, system_clock, embedder, model.model_id, concurrency=concurrency, report=_reporter()
        )
        if is_current:
            _say_end(await reindexer.run(deletes_others=True), f"All chats have vectors of {name}.")
            return
        say(f"Making vectors of {name}. Until they are complete, the service uses those that it has.")
        for _ in range(2):  # the second time for messages that arrived during the first one, which can take hours
            await reindexer.run()
        await make_current(database, model)
        # From now on, workers that still run with the former model make no vectors; they leave this work to others.
        # So after this third run nothing is missing.
        _say_end(
            await reindexer.run(),
            f"From now on, the model is {name}. Restart the API and the workers with these settings. Then run memobook "
            "reindex again: it deletes the vectors of the former model.",
        )
    finally:
        await embedder.aclose()
        await database.close()


def _reporter() -> Callable[[Counts], None]:
    """Return a function that says at intervals what was done so far."""
    said_s = monotonic()

    def report(counts: Counts) -> None:
        nonlocal said_s
        if monotonic() - said_s >= _REPORT_S:
            said_s = monotonic()
            say(f"{counts.chats:,} chats read, {counts.messages + counts.texts:,} texts with new vectors …")

    return report


def _say_end(counts: Counts, line: str) -> None:
    if counts.refused:
        say(f"Texts that the model refused, and that are found by their words only: {counts.refused:,}.")
    if counts.deleted:
        say(f"{counts.deleted:,} vectors of former models were deleted.")
    say(line)


def _run_from_markdown(options: argparse.Namespace) -> int:
    """Make the changes in the chat, or list them with `--dry-run`; print what was skipped and the number of changes."""
    if options.chat_id is None:
        raise SettingsError("--from-markdown needs --chat-id")
    ref, path = name_chat(options.tenant, options.chat_id), options.from_markdown
    try:
        outcome = asyncio.run(_bring_changes(find_database_url(options.data), ref, path, dry_run=options.dry_run))
    except OSError as error:
        problem = error.strerror or "must be a file or a folder"  # a pipe gives an error without `strerror`
        raise SettingsError(f"cannot read {path}: {problem}") from None
    for line in outcome.made if options.dry_run else ():
        say(line)
    for line in outcome.notes:
        say(f"note: {line}")
    for line in outcome.skipped:
        say(f"skipped: {line}")
    numbers = (
        f"{outcome.edited} edited, {outcome.added} added, {outcome.removed} removed, {len(outcome.skipped)} skipped"
    )
    say(f"{options.chat_id}: {numbers}{' (dry run: nothing was changed)' if options.dry_run else ''}")
    return 0


async def _bring_changes(url: str, ref: ChatRef, path: Path, *, dry_run: bool) -> Outcome:
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
