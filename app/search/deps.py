"""The FastAPI dependencies of searches."""

from typing import Annotated, Any

from fastapi import Depends, Request

from app.search.meaning import EmbedderOf, Recalling


def recalling_of(state: Any) -> Recalling:
    """Return what recall needs of the application's state."""
    return Recalling(state.recall_memory, state.embedder_of)


async def recalling(request: Request) -> Recalling:
    """Return what recall needs."""
    return recalling_of(request.app.state)


async def embedder_of(request: Request) -> EmbedderOf:
    """Return the function that returns the embedding model of a tenant."""
    found: EmbedderOf = request.app.state.embedder_of
    return found


Recalls = Annotated[Recalling, Depends(recalling)]
Embedders = Annotated[EmbedderOf, Depends(embedder_of)]
