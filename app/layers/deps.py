"""What routes ask for: the memory layers of the application."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Request

from app.layers.layer import Layer


async def layers(request: Request) -> Sequence[Layer]:
    """The memory layers there are."""
    found: Sequence[Layer] = request.app.state.layers
    return found


Layers = Annotated[Sequence[Layer], Depends(layers)]
