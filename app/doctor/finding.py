"""The result of one check. Pure."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "fault", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found. It contains no secret, address or text of a conversation.

    Attributes:
        check: The name of the check.
        state: `ok`; `note`: not a fault, but worth knowing; `fault`; or `skipped`, because another check failed.
        message: One or more sentences.
        advice: What to do about it; empty if nothing needs to be done.

    """

    check: str
    state: State
    message: str
    advice: str = ""
