"""memobook reindex: give all messages vectors of the configured embedding model, and use it from then on."""

import argparse
import asyncio
from collections.abc import Callable
from time import monotonic

from app.commands.arguments import add_data, find_database_url, say
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

_REPORT_S = 5.0
"""The time between two lines about the progress."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option for the database."""
    add_data(parser)


def run(options: argparse.Namespace) -> int:
    """Make the vectors that the configured model lacks, and make it the current one. Another run continues."""
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
        # Workers of the former model complete no more work, so after this time nothing is missing.
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
            say(f"{counts.chats:,} chats read, {counts.messages:,} messages with new vectors …")

    return report


def _say_end(counts: Counts, line: str) -> None:
    if counts.refused:
        say(f"The model refused requests with {counts.refused:,} messages, which are found by their words only.")
    if counts.deleted:
        say(f"{counts.deleted:,} vectors of former models were deleted.")
    say(line)
