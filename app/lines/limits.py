"""The limits of lines, from the settings of the service."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from app.kit.settings import Settings


@dataclass(frozen=True, slots=True)
class LineLimits:
    """How many lines a chat may have.

    Attributes:
        lines: The maximum number of lines that are not checkpoints, the current one included.
        checkpoints: The maximum number of checkpoints.
        replaced: The maximum number of replaceable lines (`ChatLine`) that are kept after a re-import has replaced
            them. If there are more, the oldest ones are deleted.

    """

    lines: int
    checkpoints: int
    replaced: int


async def line_limits(request: Request) -> LineLimits:
    """Return the limits of this process."""
    settings: Settings = request.app.state.settings
    return LineLimits(settings.max_lines, settings.max_checkpoints, settings.kept_replaced_lines)


Limits = Annotated[LineLimits, Depends(line_limits)]
