"""FastAPI dependencies: the memory layers of the application."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Request

from app.layers.layer import Layer


async def layers(request: Request) -> Sequence[Layer]:
    """Return the memory layers of the application."""
    found: Sequence[Layer] = request.app.state.layers
    return found


Layers = Annotated[Sequence[Layer], Depends(layers)]
