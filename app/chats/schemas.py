"""What goes over the wire about chats."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.chats.settings import EffectiveSettings, GivenSettings
from app.kit.blame import FieldError
from app.kit.wire import Given, JsonObject, Name, NullAs, Text, TimeZone

MAX_PERSONA_CHARS = 100_000

DISABLED = (
    "A disabled character's messages are not summarised, its persona is not sent, and it is never the sole character."
)


class Character(Given):
    """A character of the chat."""

    name: Name = Field(description="Its name, as messages give it.")
    persona: Annotated[Text, Field(max_length=MAX_PERSONA_CHARS), NullAs("")] = Field("", description="Who it is.")
    disabled: Annotated[bool, NullAs(False)] = Field(False, description=DISABLED)


class CharacterOut(BaseModel):
    """A character of the chat."""

    name: str = Field(description="Its name, as messages give it.")
    persona: str = Field("", description="Who it is.")
    disabled: bool = Field(False, description=DISABLED)


class ChatPut(Given):
    """A chat to create, or what to change of one: what is left out stays, null clears, settings merge."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": "mira",
                    "characters": [{"name": "Kai", "persona": "A lighthouse keeper who collects lost letters."}],
                    "user_persona": "Mira, a cartographer.",
                    "system_prompt": "You are Kai. Stay in character.",
                    "settings": {"preset": "memo", "memos": {"every_messages": 8}},
                    "time_zone": "Europe/Berlin",
                    "language": "en",
                    "metadata": {"theme": "dusk"},
                }
            ]
        }
    )

    user_id: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(None, description="Whose chat it is.")
    characters: Annotated[list[Character], Field(max_length=50)] | None = Field(
        None, description="Who speaks besides the user."
    )
    user_persona: Annotated[Text, Field(max_length=MAX_PERSONA_CHARS)] | None = Field(
        None, description="Who the user is in the story."
    )
    system_prompt: Annotated[Text, Field(max_length=MAX_PERSONA_CHARS)] | None = Field(
        None, description="The first text of every context."
    )
    settings: Annotated[Any, GivenSettings] | None = Field(
        None, description="What differs from the preset; null for a setting returns to the preset's value."
    )
    time_zone: TimeZone | None = Field(None, description="IANA name; UTC unless given.")
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$", max_length=35)] | None = Field(
        None, description="The conversation's language (BCP 47); memos are written in it."
    )
    metadata: JsonObject | None = Field(
        None, description="The caller's own, merged; at most 16 KiB. It belongs to the chat: a restore leaves it."
    )

    @model_validator(mode="after")
    def _unique_names(self) -> Self:
        names = [character.name for character in self.characters or ()]
        if len(names) != len(set(names)):
            raise FieldError(("characters",), "two have the same name")
        return self


class Counters(BaseModel):
    """What a chat holds."""

    messages: int = Field(description="Messages on the line, without deleted ones.")
    turns: int = Field(description="User messages with their replies.")
    tokens: int = Field(description="Tokens of all messages (o200k).")
    memos: int = Field(description="Memos in the book.")


class WorkCounts(BaseModel):
    """Background work of a chat."""

    due: int = Field(description="Things that are waiting to be made or being made.")
    failed: int = Field(description="Things that have failed for good.")


class ChatOut(BaseModel):
    """A chat."""

    chat_id: str = Field(description="The caller's id.")
    user_id: str | None = Field(description="Whose chat it is.")
    characters: list[CharacterOut] = Field(description="Who speaks besides the user.")
    user_persona: str | None = Field(description="Who the user is in the story.")
    system_prompt: str | None = Field(description="The first text of every context.")
    settings: Annotated[Any, EffectiveSettings] = Field(description="Every setting as it takes effect.")
    time_zone: str = Field(description="The chat's time zone.")
    language: str | None = Field(description="The conversation's language.")
    metadata: dict[str, Any] = Field(description="The caller's own.")
    counters: Counters = Field(description="What the chat holds.")
    line: UUID = Field(description="The line that this describes; the current one unless another was asked for.")
    anchor_seq: int = Field(description="The first seq that is still sent verbatim.")
    head_seq: int = Field(description="The highest seq used so far, also by a deleted message; 0 for an empty chat.")
    work: WorkCounts = Field(description="Due and failed background work.")
    created_at: datetime = Field(description="When it was created.")
    last_active_at: datetime = Field(description="When something was appended last.")


class PresetOut(BaseModel):
    """A preset."""

    name: str = Field(description="Its name.")
    description: str = Field(description="What it is for.")
    settings: Annotated[Any, EffectiveSettings] = Field(description="All of its settings.")
    missing_layers: list[str] = Field(description="Layers it switches on that this version does not make yet.")


class Presets(BaseModel):
    """All presets, and what each setting means."""

    items: list[PresetOut] = Field(description="The presets.")
    settings_schema: dict[str, Any] = Field(description="JSON Schema of the settings, with their descriptions.")
