"""The settings of a chat, nested by layer, with defaults from a preset. Pure.

A chat stores only the settings that requests have set; its preset provides the others. Each layer defines its own
section (`app/<layer>/settings.py`).
"""

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

import orjson
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from app.chats.presets import PRESETS
from app.kit.validation_errors import FieldError, error_location

log = logging.getLogger(__name__)

PresetName = Literal["memo", "diary", "scenes", "agent", "decay", "companion"]
Scope = Literal["chat", "character", "user", "global"]

EVERY_8, EVERY_MESSAGE = BUILT_IN_EDGES = ("every_8", "every_message")
"""The edges that need no layer; `SettingsSchema` adds those of the layers."""

FORCED_MARGIN_MESSAGES = 32
"""The default of `max_messages` is `keep_messages` + `grow_messages` + this number, or more than that if a layer can
leave more messages uncovered."""


class Section(BaseModel):
    """A group of settings: unknown keys are rejected, and instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Budget(Section):
    """A limit in tokens, absolute or as a share of the context."""

    type: Literal["percent", "absolute"] = Field(description="The unit of `value`.")
    value: int = Field(ge=0, le=2_000_000, description="Percent of `context_tokens` (rounded down), or tokens.")

    def tokens(self, context_tokens: int) -> int:
        """Return the limit in tokens."""
        return self.value if self.type == "absolute" else context_tokens * self.value // 100


class LayerSettings(Section):
    """The settings of a layer, under the name `section`; the layer's package defines them, the registry adds them."""

    section: ClassVar[str]

    enabled: bool = Field(False, description="Whether the layer is on.")

    @classmethod
    def of(cls, settings: "ChatSettings") -> Self:
        """Return the layer's section of a chat's settings."""
        section: Self = getattr(settings, cls.section)
        return section

    @property
    def most_messages_uncovered(self) -> int:
        """The maximum number of messages that gather before the layer covers them, for example the size of a batch."""
        return 0


class PlacementSettings(Section):
    """Where a memory segment goes in the prompt."""

    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "in_prompt",
        description="Where the segment is: in the usual order (`in_prompt`, 0), before all others (`before_prompt`, "
        "2), among the messages (`in_chat`, 1), or nowhere (`none`, -1). The numbers are SillyTavern's.",
    )
    depth: int = Field(2, ge=0, le=1_000, description="With `in_chat`: how many messages follow it.")
    role: Literal["system", "user", "assistant"] = Field("system", description="With `in_chat`: its role.")
    scan: bool | None = Field(
        None,
        description="A mark for the caller: whether to scan the segment for keywords of a lorebook.",
    )


class EligibilitySettings(LayerSettings):
    """Settings that decide which messages are summarised: one layer has them, and all layers follow them."""

    include_user: bool = Field(True, description="Whether the user's messages are summarised.")
    include_system: bool = Field(False, description="Whether system messages are summarised.")
    include_narrator: bool = Field(True, description="Whether the narrator's messages are summarised.")
    min_tokens: int = Field(0, ge=0, le=100_000, description="Messages with fewer tokens are not summarised.")


class HistorySettings(Section):
    """The messages that are sent verbatim."""

    keep_messages: int = Field(16, ge=1, le=2_000, description="A cut leaves at least this many messages.")
    grow_messages: int = Field(
        16,
        ge=0,
        le=2_000,
        description="How many more messages may gather before a cut is due.",
    )
    max_messages: int | None = Field(
        None,
        ge=2,
        le=10_000,
        description="From this many messages on, a cut no longer waits for memories of what it removes. By default "
        "`keep_messages` + `grow_messages` + the larger of 32 and `memos.every_messages`.",
    )
    edges: str = Field(
        EVERY_8,
        description="Where the history may begin after a cut: after a batch, after a fold of the summary, with a "
        "scene, at every eighth seq, or at any message. If the layer of the batches, folds or scenes is off: at every "
        "eighth seq.",
    )
    keep_scenes: int = Field(
        2, ge=0, le=50, description="With the edges `scenes`: how many of the newest scenes a cut leaves."
    )

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.max_messages is not None and self.max_messages <= self.keep_messages + self.grow_messages:
            raise FieldError(("max_messages",), "must be more than keep_messages + grow_messages")
        return self


class PinnedSettings(PlacementSettings):
    """The segment `pinned`: pinned messages that have left the history, word for word."""

    budget: Budget | None = Field(None, description="The limit of the segment; null sets no limit.")


class RecallSettings(PlacementSettings):
    """The segment `recalled`: search results."""

    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "in_prompt",
        description="Where the results are: after the history (`in_prompt`), among the messages (`in_chat`), or "
        "nowhere (`none`: contexts do not search). With `before_prompt`, the provider can cache nothing in a turn with "
        "results.",
    )

    mode: Literal["off", "auto", "tool"] = Field(
        "off",
        description="`auto` searches for each context and offers the tool `memory_search`; `tool` only offers it; "
        "`off` does neither.",
    )
    tokens: int = Field(500, ge=1, le=100_000, description="The limit of the results, in tokens.")


class SearchSettings(Section):
    """Searches."""

    across_chats: bool = Field(False, description="Whether a search over all chats of the user includes this chat.")


class ChatSettings(Section):
    """The settings of a chat that belong to no layer.

    `SettingsSchema.whole` adds the sections of the layers; all settings that take effect are instances of it.
    """

    preset: PresetName = Field("memo", description="The preset that provides the defaults.")
    context_tokens: int = Field(32_000, ge=1, le=2_000_000, description="The default of a context's `max_tokens`.")
    token_factor: float = Field(
        1.0, ge=0.1, le=10, description="Multiplies o200k counts; about 1.35 suits Claude's tokenizer."
    )
    cache: Literal["auto", "off", "5m", "1h"] = Field(
        "auto",
        description="How long the provider should cache the prompt; `off` gives no breakpoints. `auto` chooses the "
        "value that would have cost least with the last 16 pauses before the user's messages.",
    )
    cache_ttl_s: int = Field(
        300,
        ge=0,
        le=86_400,
        description="After a pause of more seconds than this, the prompt counts as no longer cached, and the "
        "history may be cut early (`cold`). If not set: 3,600 if `cache` is `1h` or `auto` chose `1h`; otherwise 300.",
    )
    timestamps: Literal["off", "inline"] = Field(
        "off",
        description="`inline` writes `[04/01 22:15] Sakura: …` in contexts. A reply that begins with such a stamp is "
        "stored without it.",
    )
    time: bool = Field(False, description="Whether a segment after the history contains the current time.")
    instruction: str | None = Field(
        None,
        max_length=20_000,
        pattern=r"^[^\x00]*$",  # PostgreSQL cannot store NUL
        description="Replaces the text that explains to the model how to use its memory; '' omits it.",
    )
    history: HistorySettings = Field(HistorySettings(), description="The messages that are sent verbatim.")
    pinned: PinnedSettings = Field(PinnedSettings(), description="Pinned messages.")
    recall: RecallSettings = Field(RecallSettings(), description="Recall. With `auto`, contexts have no `ETag`.")
    search: SearchSettings = Field(SearchSettings(), description="Searches.")

    @cached_property
    def max_messages(self) -> int:
        """From this many history messages on, a cut no longer waits for memories of the messages that it removes."""
        history = self.history
        if history.max_messages is not None:
            return history.max_messages
        margin = max([FORCED_MARGIN_MESSAGES, *(section.most_messages_uncovered for section in self.list_sections())])
        return history.keep_messages + history.grow_messages + margin

    def list_sections(self) -> list[LayerSettings]:
        """Return the sections of the layers."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return [value for value in values if isinstance(value, LayerSettings)]

    @cached_property
    def eligibility(self) -> EligibilitySettings:
        """The section that decides which messages are summarised; the defaults if there is no such layer."""
        found = (section for section in self.list_sections() if isinstance(section, EligibilitySettings))
        return next(found, EligibilitySettings())


def merge(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `patch` into `old` (RFC 7396): mappings merge, null removes, anything else replaces."""
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            inner = merged.get(key)
            merged[key] = merge(inner if isinstance(inner, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def check_overrides(overrides: Mapping[str, Any]) -> ChatSettings:
    """Return the settings with these overrides of the preset. Raises pydantic's ValidationError."""
    defaults = PRESETS.get(str(overrides.get("preset", "memo")), {})
    return schema().whole.model_validate(merge(defaults, overrides))


def effective(overrides: Mapping[str, Any]) -> ChatSettings:
    """Return the settings that take effect with these stored overrides."""
    return _read_stored(overrides)[1]


def still_valid(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored overrides without those that are no longer valid."""
    return _read_stored(overrides)[0]


def _read_stored(overrides: Mapping[str, Any]) -> tuple[dict[str, Any], ChatSettings]:
    """Return the stored overrides that are valid, and the settings that take effect.

    The overrides were valid for the version that stored them. A setting that this version does not know or allow must
    not make the chat unusable: the preset's value is used instead, and a warning is logged.
    """
    kept = dict(overrides)
    while True:
        try:
            return kept, check_overrides(kept)
        except ValidationError as error:
            location = error_location(error.errors()[0])
            log.warning("ignored a stored setting that is not valid: %s", ".".join(map(str, location)))
            kept = _without(kept, location)


def _without(overrides: Mapping[str, Any], location: Sequence[Any]) -> dict[str, Any]:
    """Return the overrides without the value at `location`, or without the nearest value above it."""
    name, *inner = location
    below = overrides[name]
    rest = {key: value for key, value in overrides.items() if key != name}
    if isinstance(below, Mapping) and inner and inner[0] in below:
        return rest | {name: _without(below, inner)}
    return rest


@lru_cache(maxsize=1_024)
def effective_json(overrides: str) -> ChatSettings:
    """Return `effective` of overrides as stored JSON; cached, because many chats have the same overrides."""
    return effective(orjson.loads(overrides))


def _patch_of(section: type[Section]) -> type[Section]:
    """Return the section with every field optional, also in nested sections: what a PUT may contain."""
    fields: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        kind = field.annotation
        inner = kind if isinstance(kind, type) and issubclass(kind, Section) else None
        constrained = Annotated[(kind, *field.metadata)] if field.metadata else kind
        annotation: Any = _patch_of(inner) if inner else constrained
        fields[name] = (annotation | None, Field(None, description=field.description))
    return create_model(f"{section.__name__}Patch", __base__=Section, __doc__=section.__doc__, **fields)


def _history_of(edges: Sequence[str]) -> type[HistorySettings]:
    """Return `HistorySettings` with a choice of these edges."""
    choice: Any = Literal[tuple(edges)]
    field = Field(edges[0], description=HistorySettings.model_fields["edges"].description)
    fields: dict[str, Any] = {"edges": (choice, field)}
    return create_model("HistorySettings", __base__=HistorySettings, __doc__=HistorySettings.__doc__, **fields)


class SettingsSchema:
    """The models of a chat's settings, with the sections and the edges of a set of layers.

    The first of the edges is the default.

    Attributes:
        whole: All settings, as they take effect.
        patch: What a request may contain: any part of the settings, with null for the preset's value.

    """

    def __init__(self, sections: Sequence[type[LayerSettings]], edges: Sequence[str] = ()) -> None:
        fields: dict[str, Any] = {one.section: (one, Field(one(), description=_summary(one))) for one in sections}
        history = _history_of((*edges, *BUILT_IN_EDGES))
        fields["history"] = (history, Field(history(), description=ChatSettings.model_fields["history"].description))
        self.whole: type[ChatSettings] = create_model("ChatSettings", __base__=ChatSettings, **fields)
        self.whole.__doc__ = "The settings of a chat."
        self.patch: type[Section] = _patch_of(self.whole)


_schema: SettingsSchema | None = None


def use_sections(sections: Sequence[type[LayerSettings]], edges: Sequence[str]) -> None:
    """Set the layers whose sections and edges this process uses; `app/registry.py` calls it."""
    global _schema
    _schema = SettingsSchema(sections, edges)
    effective_json.cache_clear()


def schema() -> SettingsSchema:
    """Return the schema in use. Raises RuntimeError if the registry has not been imported."""
    if _schema is None:
        raise RuntimeError("the settings have no layers yet: import app.registry first")
    return _schema


class _InUse:
    """The type of a field of an HTTP body. It validates with a model of the schema in use and shows it in OpenAPI."""

    @classmethod
    def model(cls) -> type[Section]:
        raise NotImplementedError

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(lambda value: cls.model().model_validate(value))

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(cls.model().__pydantic_core_schema__)


class GivenSettings(_InUse):
    """The settings in a request."""

    @classmethod
    def model(cls) -> type[Section]:
        """Return the model of the settings that a request may contain."""
        return schema().patch


class EffectiveSettings(_InUse):
    """The settings in a response."""

    @classmethod
    def model(cls) -> type[Section]:
        """Return the model of all settings."""
        return schema().whole


def _summary(section: type[Section]) -> str:
    return (section.__doc__ or "").partition("\n")[0]
