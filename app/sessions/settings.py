"""The settings of sessions. Pure."""

from typing import Any, ClassVar

from pydantic import Field, model_validator

from app.chats.settings import LayerSettings
from app.sessions.breaks import BreakRules

_LIMITS = ("idle_timeout_s", "daily_reset_hour", "max_turns")


class SessionSettings(LayerSettings):
    """When a new session begins."""

    section: ClassVar[str] = "sessions"

    enabled: bool = Field(
        False,
        description="Whether sessions end by themselves. If it is left out, it is true if another setting of "
        "`sessions` is set.",
    )
    idle_timeout_s: int | None = Field(
        None,
        ge=1,
        le=31_536_000,
        description="After a pause of this many seconds, a new session begins with the next message; null: never.",
    )
    daily_reset_hour: int | None = Field(
        None,
        ge=0,
        le=23,
        description="A new session begins with the first message after this hour, in the chat's time zone; null: "
        "never.",
    )
    max_turns: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="A new session begins with the user's next message after this many turns; null: never.",
    )

    @model_validator(mode="before")
    @classmethod
    def _switch_on(cls, given: Any) -> Any:
        """Switch sessions on if a limit is given, unless `enabled` is given too."""
        if isinstance(given, dict) and "enabled" not in given and any(given.get(name) is not None for name in _LIMITS):
            return {**given, "enabled": True}
        return given

    def rules(self, time_zone: str) -> BreakRules | None:
        """Return the rules for a chat in this time zone; None if no session ends by itself."""
        limits = (self.idle_timeout_s, self.daily_reset_hour, self.max_turns)
        return BreakRules(*limits, time_zone) if self.enabled and limits != (None, None, None) else None
