"""memobook reindex: use the configured embedding model from now on, and give all messages vectors."""

import argparse
import asyncio

from app.commands.arguments import add_data, find_database_url, say
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option for the database."""
    add_data(parser)


def run(options: argparse.Namespace) -> int:
    """Record the configured model as the one whose vectors are compared, and make the vectors of all chats due."""
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
