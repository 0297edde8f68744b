"""The current model: recorded at the first start, and compared with the settings at each later start.

Vectors of different models, or of different lengths, cannot be compared. `memobook reindex` makes the vectors of a
*coming* model beside those of the current one, and then makes it the current one.
"""

import asyncio
import logging
from typing import Final

from app.embeddings import queries
from app.embeddings.recorded import RecordedModel
from app.embeddings.scale import UNRELATED, measure_unrelated
from app.kit.clock import Clock
from app.kit.db import Connection, Database
from app.kit.job_context import TextEmbedder
from app.kit.llm.answer import ModelError
from app.kit.settings import PREFIX, SettingsError

log = logging.getLogger(__name__)

START_S: Final = 5.0
"""How long a start waits for the model."""

PROBE: Final = "A lighthouse."
"""A harmless text, sent to find out whether the model answers, and how long its vectors are."""


class ModelDiffers(Exception):
    """The stored vectors are of another model, or have another length. The message is one line."""


async def get_current(database: Database, embedder: TextEmbedder, clock: Clock) -> RecordedModel:
    """Return the recorded model, and record `embedder` if there is none.

    If the length of the model's vectors or the mean similarity of unrelated texts (`scale.py`) is not known yet, the
    model is called to find it out. Raises ModelDiffers if another model is recorded, and ModelError if the model is
    called and does not answer.
    """
    async with database.raw() as connection:
        recorded = await queries.find_current(connection)
    is_known = recorded is not None and recorded.unrelated is not None and embedder.dimension is not None
    if not is_known and (recorded is None or recorded.name == embedder.name):
        dimension, unrelated = await _measure(embedder)
        async with database.raw() as connection:
            if recorded is None:
                await queries.insert_first(connection, name=embedder.name, dimension=dimension, now=clock())
            await queries.set_unrelated(connection, embedder.name, dimension, unrelated)
            recorded = await queries.find_current(connection)
    assert recorded is not None
    if fault := recorded.find_difference(embedder.name, embedder.dimension):
        raise ModelDiffers(fault)
    return recorded


async def _measure(embedder: TextEmbedder) -> tuple[int, float]:
    """Ask the model, and return the length of its vectors and the similarity of unrelated texts. Raises ModelError."""
    vectors = (await embedder.embed(UNRELATED)).vectors
    return len(vectors[0]), measure_unrelated(vectors)


async def find_fault(connection: Connection, embedder: TextEmbedder) -> str | None:
    """Ask the model for a vector. Return how the model differs from the recorded one, or None. Raises ModelError."""
    await embedder.embed([PROBE])
    recorded = await queries.find_current(connection)
    return recorded.find_difference(embedder.name, embedder.dimension) if recorded else None


async def check_at_start(database: Database, embedder: TextEmbedder, clock: Clock) -> None:
    """Compare the configured model with the recorded one, or record it if there is none.

    Raises SettingsError if they differ. If the model does not answer, a warning is logged: searches compare only words
    until it answers.
    """
    try:
        async with asyncio.timeout(START_S):
            await get_current(database, embedder, clock)
    except ModelDiffers as error:
        raise SettingsError(f"{PREFIX}EMBEDDINGS_MODEL: {error}; run memobook reindex") from None
    except ModelError as error:
        log.warning("the embedding model cannot be checked: %s", error.reason)
    except TimeoutError:
        log.warning("the embedding model cannot be checked: it did not answer within %g s", START_S)


async def record_coming(database: Database, embedder: TextEmbedder, clock: Clock) -> tuple[RecordedModel, bool]:
    """Record the model of `embedder`; return the recorded model, and whether it is the current one.

    If no model is current, `embedder` becomes the current one; otherwise only `make_current` changes the current model.
    Raises ModelError.
    """
    name = embedder.name
    dimension, unrelated = await _measure(embedder)
    async with database.unit_of_work() as db_session:
        connection = db_session.raw
        await queries.insert_first(connection, name=name, dimension=dimension, now=clock())
        await queries.insert_coming(connection, name=name, dimension=dimension, now=clock())
        await queries.set_unrelated(connection, name, dimension, unrelated)
        coming = await queries.get(connection, name, dimension)
        return coming, coming == await queries.find_current(connection)


async def make_current(database: Database, model: RecordedModel) -> None:
    """Make a recorded model the current one: from now on, a process configured with another one does not start."""
    async with database.unit_of_work() as db_session:
        await queries.replace_current(db_session.raw, model.model_id)
