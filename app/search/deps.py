"""The FastAPI dependency of what contexts recalled before."""

from typing import Annotated

from fastapi import Depends, Request

from app.search.recall_memory import RecallMemory


async def recall_memory(request: Request) -> RecallMemory:
    """Return the application's memory of what was recalled."""
    found: RecallMemory = request.app.state.recall_memory
    return found


Recalls = Annotated[RecallMemory, Depends(recall_memory)]
