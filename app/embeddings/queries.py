"""The SQL of embedding models."""

from datetime import datetime

from app.embeddings.recorded import RecordedModel
from app.kit.db import Connection


async def find_current(connection: Connection) -> RecordedModel | None:
    """Return the current model, or None if none was ever recorded."""
    row = await connection.fetchrow(
        "SELECT model_id, name, dimension, unrelated_similarity FROM embedding_models WHERE is_current"
    )
    return RecordedModel(*row) if row else None


async def insert_first(connection: Connection, *, name: str, dimension: int, now: datetime) -> None:
    """Record the current model, unless there is one."""
    await connection.execute(
        """
        INSERT INTO embedding_models (name, dimension, created_at, is_current) VALUES ($1, $2, $3, true)
        ON CONFLICT DO NOTHING
        """,
        name,
        dimension,
        now,
    )


async def insert_coming(connection: Connection, *, name: str, dimension: int, now: datetime) -> None:
    """Record a model, unless it is recorded already."""
    await connection.execute(
        """
        INSERT INTO embedding_models (name, dimension, created_at, is_current) VALUES ($1, $2, $3, false)
        ON CONFLICT DO NOTHING
        """,
        name,
        dimension,
        now,
    )


async def get(connection: Connection, name: str, dimension: int) -> RecordedModel:
    """Return a model that is recorded."""
    row = await connection.fetchrow(
        """
        SELECT model_id, name, dimension, unrelated_similarity FROM embedding_models
        WHERE name = $1 AND dimension = $2
        """,
        name,
        dimension,
    )
    assert row is not None
    return RecordedModel(*row)


async def set_unrelated(connection: Connection, name: str, dimension: int, unrelated: float) -> None:
    """Record the mean similarity of unrelated texts with this model (`scale.py`), unless it is recorded already."""
    await connection.execute(
        """
        UPDATE embedding_models SET unrelated_similarity = $3
        WHERE name = $1 AND dimension = $2 AND unrelated_similarity IS NULL
        """,
        name,
        dimension,
        unrelated,
    )


async def replace_current(connection: Connection, model_id: int) -> None:
    """Make this model the current one. Call it in a transaction."""
    await connection.execute(
        "UPDATE embedding_models SET is_current = false WHERE is_current AND model_id <> $1", model_id
    )
    await connection.execute("UPDATE embedding_models SET is_current = true WHERE model_id = $1", model_id)
