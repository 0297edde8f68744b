"""Request and response schemas of chats."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.chats.settings import EffectiveSettings, GivenSettings
from app.kit.validation_errors import FieldError
from app.kit.wire import NOT_BLANK_SCHEMA, JsonObject, Name, NotBlank, NullAs, PathText, RequestModel, Text, TimeZone

MAX_PERSONA_CHARS = 100_000
CharacterName = Annotated[PathText, Field(min_length=1, max_length=200, json_schema_extra=NOT_BLANK_SCHEMA), NotBlank]

CHARACTER_ID = "The character's id."
ALIASES = "The character's former names, newest last, at most 20. Each still identifies the character."
DISABLED = (
    "If true, its messages are not summarised, its persona is not sent, and it is never a request's default character."
)


class Character(RequestModel):
    """A character of the chat.

    A stored character with this `id` is updated. Without an `id`, the one that has or had this `name` is updated. If
    there is none, a new character is added.
    """

    id: UUID | None = Field(
        None,
        description=f"{CHARACTER_ID} By default, the service makes one for a new character. A stored character's id "
        "cannot be changed.",
    )
    name: CharacterName = Field(
        description="The character's name, as in messages. `POST …/characters/{name}/rename` changes it."
    )
    aliases: Annotated[list[Name], Field(max_length=100)] | None = Field(
        None,
        description=f"{ALIASES} A name that the list lacks is removed, and can be given to another character. Names "
        "that the character never had are ignored.",
    )
    persona: Annotated[Text, Field(max_length=MAX_PERSONA_CHARS), NullAs("")] = Field(
        "", description="A description of the character."
    )
    disabled: Annotated[bool, NullAs(False)] = Field(False, description=DISABLED)


class CharacterOut(BaseModel):
    """A character of the chat."""

    id: UUID = Field(description=CHARACTER_ID)
    name: str = Field(description="The character's name, as in messages.")
    aliases: list[str] = Field(description=ALIASES)
    persona: str = Field("", description="A description of the character.")
    disabled: bool = Field(False, description=DISABLED)


class CharacterRename(RequestModel):
    """The new name of a character."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Captain Kai"}]})

    name: CharacterName = Field(description="The new name. It must not be a name or former name of another character.")


class ChatPut(RequestModel):
    """A chat to create or to change: a field that is left out keeps its value, null clears it, settings are merged.

    `characters` replaces the whole list. A character of the list loses the fields that are left out, except its id and
    its former names.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": "mira",
                    "characters": [{"name": "Kai", "persona": "A lighthouse keeper who collects lost letters."}],
                    "user_name": "Mira",
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

    user_id: Annotated[PathText, Field(min_length=1, max_length=200)] | None = Field(
        None, description="The id of the chat's user, chosen by the caller."
    )
    characters: Annotated[list[Character], Field(max_length=50)] | None = Field(
        None, description="The characters of the chat."
    )
    user_name: Annotated[Name, Field(json_schema_extra=NOT_BLANK_SCHEMA), NotBlank] | None = Field(
        None, description="The user's name in the story: the speaker of user messages without a name."
    )
    user_persona: Annotated[Text, Field(max_length=MAX_PERSONA_CHARS)] | None = Field(
        None, description="A description of the user in the story."
    )
    system_prompt: Annotated[Text, Field(max_length=MAX_PERSONA_CHARS)] | None = Field(
        None, description="The first text of every context, unless memory is placed before it."
    )
    settings: Annotated[Any, GivenSettings] | None = Field(
        None, description="The settings that differ from the preset; null resets a setting to the preset's value."
    )
    time_zone: TimeZone | None = Field(None, description="The name of an IANA time zone; UTC by default.")
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$", max_length=35)] | None = Field(
        None,
        description="The language (BCP 47) in which the model writes memories; by default that of the messages.",
    )
    metadata: JsonObject | None = Field(
        None,
        description="The caller's own JSON object, merged into the stored one, which may have at most 16 KiB.",
    )

    @model_validator(mode="after")
    def _unique_names(self) -> Self:
        names = [character.name for character in self.characters or ()]
        if len(names) != len(set(names)):
            raise FieldError(("characters",), "must not have the same name twice")
        ids = [character.id for character in self.characters or () if character.id is not None]
        if len(ids) != len(set(ids)):
            raise FieldError(("characters",), "must not have the same id twice")
        return self

    @model_validator(mode="after")
    def _unique_aliases(self) -> Self:
        known: set[str] = set()
        for index, character in enumerate(self.characters or ()):
            aliases = set(character.aliases or ())
            if shared := sorted(aliases & known):
                message = f"must not have the alias “{shared[0]}”, which another character has too"
                raise FieldError(("characters", index, "aliases"), message)
            known |= aliases
        return self


class Counters(BaseModel):
    """Counters of a chat."""

    messages: int = Field(description="The number of messages on the line, without deleted ones.")
    turns: int = Field(description="The number of turns.")
    tokens: int = Field(description="The o200k tokens of the counted messages.")
    memos: int = Field(description="The number of memos in the memo book.")


class WorkCounts(BaseModel):
    """The number of background work items of a chat."""

    due: int = Field(description="Items that are `due` or `running`.")
    failed: int = Field(description="Items that have failed for good.")


class ChatOut(BaseModel):
    """A chat."""

    chat_id: str = Field(description="The chat's id.")
    user_id: str | None = Field(description="The id of the chat's user.")
    characters: list[CharacterOut] = Field(description="The characters.")
    user_name: str | None = Field(description="The user's name in the story.")
    user_persona: str | None = Field(description="A description of the user in the story.")
    system_prompt: str | None = Field(description="The first text of every context, unless memory is placed before it.")
    settings: Annotated[Any, EffectiveSettings] = Field(description="The settings in effect.")
    time_zone: str = Field(description="The chat's time zone.")
    language: str | None = Field(description="The conversation's language.")
    metadata: dict[str, Any] = Field(description="The caller's own JSON object.")
    counters: Counters = Field(description="The counters.")
    line: UUID = Field(description="The line that this answer describes.")
    anchor_seq: int = Field(description="The first seq that is still sent verbatim.")
    head_seq: int = Field(description="The highest seq so far, even of a deleted message; 0 if there is none.")
    work: WorkCounts = Field(description="The background work.")
    created_at: datetime = Field(description="When the chat was created.")
    last_active_at: datetime = Field(description="When messages were last appended, or the chat was created or forked.")


class PresetOut(BaseModel):
    """A preset."""

    name: str = Field(description="The preset's name.")
    description: str = Field(description="What it is for.")
    settings: Annotated[Any, EffectiveSettings] = Field(description="All its settings.")
    missing_layers: list[str] = Field(
        [], description="Layers of the preset that this version does not have; none at present."
    )


class Presets(BaseModel):
    """All presets and settings."""

    items: list[PresetOut] = Field(description="The presets.")
    settings_schema: dict[str, Any] = Field(description="JSON Schema of the settings, with their descriptions.")
