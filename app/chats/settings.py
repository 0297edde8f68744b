"""The settings of a chat, nested by layer, on top of the preset that gives their defaults. Pure.

A chat stores only what differs from its preset. Each layer defines its own section (`app/<layer>/settings.py`);
sections of layers that are still to come are here, so that a preset means the same thing before and after.
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
from app.kit.blame import FieldError, place_of

log = logging.getLogger(__name__)

PresetName = Literal["memo", "diary", "scenes", "agent", "decay", "companion"]
Scope = Literal["chat", "character", "user", "global"]

EVERY_8, EVERY_MESSAGE = OWN_EDGES = ("every_8", "every_message")
"""The edges that need no layer; `SettingsSchema` adds those of the layers."""

FORCED_MARGIN_MESSAGES = 32
"""How far a history may outgrow its limit at least while it waits for memos."""


class Section(BaseModel):
    """A group of settings: unknown keys are refused, values never change in place."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Budget(Section):
    """A limit in tokens, absolute or as a share of the context."""

    type: Literal["percent", "absolute"] = Field(description="How `value` is meant.")
    value: int = Field(ge=0, le=2_000_000, description="Percent of `context_tokens` (rounded down), or tokens.")

    def tokens(self, context_tokens: int) -> int:
        """The limit in tokens."""
        return self.value if self.type == "absolute" else context_tokens * self.value // 100


class LayerSettings(Section):
    """The section of a layer, under the name `section`; the layer's package defines it, the registry adds it."""

    section: ClassVar[str]

    enabled: bool = Field(False, description="Whether the layer is on.")

    @classmethod
    def of(cls, settings: "ChatSettings") -> Self:
        """The layer's section of a chat's settings."""
        section: Self = getattr(settings, cls.section)
        return section

    @property
    def most_messages_uncovered(self) -> int:
        """How many messages the layer may leave uncovered before it covers the next one."""
        return 0


class PlacementSettings(Section):
    """Where a memory segment goes in the prompt."""

    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "in_prompt",
        description="Where its segment goes: at its position in the order of segments, ahead of everything, among the "
        "messages, or nowhere; SillyTavern's numbers are accepted.",
    )
    depth: int = Field(2, ge=0, le=1_000, description="With `in_chat`: messages back from the end.")
    role: Literal["system", "user", "assistant"] = Field("system", description="With `in_chat`: who says it.")
    scan: bool | None = Field(None, description="Handed through on the segment for a caller with a lorebook.")


class EligibilitySettings(LayerSettings):
    """A layer whose settings decide which messages are summarised, in every layer."""

    include_user: bool = Field(True, description="Whether the user's messages are summarised.")
    include_system: bool = Field(False, description="Whether system messages are summarised.")
    include_narrator: bool = Field(True, description="Whether the narrator's messages are summarised.")
    min_tokens: int = Field(0, ge=0, le=100_000, description="Shorter messages are not summarised.")


class HistorySettings(Section):
    """How much of the conversation is sent verbatim."""

    keep_messages: int = Field(16, ge=1, le=2_000, description="A cut leaves at least so many messages.")
    grow_messages: int = Field(
        16,
        ge=0,
        le=2_000,
        description="How many more may gather before the next cut; 0 slides with every message.",
    )
    max_messages: int | None = Field(
        None,
        ge=2,
        le=10_000,
        description="From so many on the cut no longer waits for memos. "
        "By default keep + grow + the larger of 32 and `memos.every_messages`.",
    )
    edges: str = Field(EVERY_8, description="Where a cut may fall.")
    keep_scenes: int = Field(2, ge=0, le=50, description="With scene edges: a cut also leaves the last so many scenes.")

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.max_messages is not None and self.max_messages <= self.keep_messages + self.grow_messages:
            raise FieldError(("max_messages",), "must be more than keep_messages + grow_messages")
        return self


class PinnedSettings(Section):
    """Pinned messages: kept verbatim once they are out of the history."""

    budget: Budget | None = Field(None, description="The most that pinned messages may take.")


class ConsolidationSettings(Section):
    """Learning facts and memories from what was said."""

    enabled: bool = Field(False, description="Whether facts and memories are learnt.")
    every_turns: int = Field(5, ge=1, le=1_000, description="How often.")


class MemorySettings(Section):
    """Long-term memories."""

    half_life_days: float = Field(7.0, gt=0, le=36_500, description="How fast importance halves.")
    max_memories: int = Field(1_000, ge=1, le=100_000, description="What falls off goes to the archive.")
    learn_scope: Scope = Field("chat", description="Whom learnt facts and memories belong to.")


class RecallSettings(Section):
    """Search results in the prompt."""

    mode: Literal["off", "auto", "tool"] = Field("off", description="`auto` puts them into the volatile tail.")
    tokens: int = Field(500, ge=1, le=100_000, description="The most they may take.")


class SessionSettings(Section):
    """When a new session begins."""

    idle_timeout_s: int | None = Field(None, ge=1, le=31_536_000, description="After so long a silence; null: never.")
    daily_reset_hour: int | None = Field(None, ge=0, le=23, description="At this hour of the chat's zone.")
    max_turns: int | None = Field(None, ge=1, le=100_000, description="After so many turns.")


class ChatSettings(Section):
    """The settings of a chat that belong to no layer, and those of layers that are still to come.

    `SettingsSchema.whole` adds the sections of the layers; every value that takes effect is of that class.
    """

    preset: PresetName = Field("memo", description="Where the defaults come from.")
    context_tokens: int = Field(32_000, ge=1, le=2_000_000, description="A context's `max_tokens` unless given.")
    token_factor: float = Field(
        1.0, ge=0.1, le=10, description="Multiplies o200k counts; about 1.35 suits Claude's tokenizer."
    )
    cache_ttl_s: int = Field(300, ge=0, le=86_400, description="How long the provider keeps a prompt prefix.")
    timestamps: Literal["off", "inline"] = Field("off", description="`inline` writes `[04/01 22:15] Sakura: …`.")
    time: bool = Field(False, description="Whether a last, volatile segment tells the time.")
    instruction: str | None = Field(
        None,
        max_length=20_000,
        pattern=r"^[^\x00]*$",  # PostgreSQL takes no NUL
        description="Replaces the text that tells the model how to use its memory; '' omits it.",
    )
    history: HistorySettings = Field(HistorySettings(), description="What is sent verbatim.")
    pinned: PinnedSettings = Field(PinnedSettings(), description="Pinned messages.")
    consolidation: ConsolidationSettings = Field(ConsolidationSettings(), description="Consolidation.")
    memories: MemorySettings = Field(MemorySettings(), description="Long-term memories.")
    recall: RecallSettings = Field(RecallSettings(), description="Recall.")
    sessions: SessionSettings = Field(SessionSettings(), description="Sessions.")

    @property
    def max_messages(self) -> int:
        """From how many history messages on a cut no longer waits."""
        history = self.history
        if history.max_messages is not None:
            return history.max_messages
        margin = max([FORCED_MARGIN_MESSAGES, *(section.most_messages_uncovered for section in self.list_sections())])
        return history.keep_messages + history.grow_messages + margin

    def list_sections(self) -> list[LayerSettings]:
        """The sections of the layers."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return [value for value in values if isinstance(value, LayerSettings)]

    @cached_property
    def eligibility(self) -> EligibilitySettings:
        """The section that decides which messages are summarised; its defaults without such a layer."""
        found = (section for section in self.list_sections() if isinstance(section, EligibilitySettings))
        return next(found, EligibilitySettings())

    def missing_layers(self) -> list[str]:
        """Layers that are switched on and not built yet."""
        planned = {"consolidation": self.consolidation.enabled, "recall": self.recall.mode != "off"}
        built = {section.section for section in self.list_sections()}
        return [name for name, on in planned.items() if on and name not in built]


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
    """What would take effect: the preset's values under the chat's own. Raises pydantic's ValidationError."""
    defaults = PRESETS.get(str(overrides.get("preset", "memo")), {})
    return schema().whole.model_validate(merge(defaults, overrides))


def effective(overrides: Mapping[str, Any]) -> ChatSettings:
    """What takes effect of overrides as they are stored."""
    return _read_stored(overrides)[1]


def still_valid(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides as they are stored, without what is no longer valid."""
    return _read_stored(overrides)[0]


def _read_stored(overrides: Mapping[str, Any]) -> tuple[dict[str, Any], ChatSettings]:
    """What counts of stored overrides, and what takes effect.

    They were valid for the version that stored them. What this one does not know or allow must not lock the
    chat: it returns to the preset's value, and the log says where.
    """
    kept = dict(overrides)
    while True:
        try:
            return kept, check_overrides(kept)
        except ValidationError as error:
            place = place_of(error.errors()[0])
            log.warning("a stored setting is not valid and does not count: %s", ".".join(map(str, place)))
            kept = _without(kept, place)


def _without(overrides: Mapping[str, Any], place: Sequence[Any]) -> dict[str, Any]:
    """Overrides without what stands at `place`, or without what is nearest above it."""
    name, *inner = place
    below = overrides[name]
    rest = {key: value for key, value in overrides.items() if key != name}
    if isinstance(below, Mapping) and inner and inner[0] in below:
        return rest | {name: _without(below, inner)}
    return rest


@lru_cache(maxsize=1_024)
def effective_json(overrides: str) -> ChatSettings:
    """`effective` of overrides as they are stored; remembered, because a few settings serve most chats."""
    return effective(orjson.loads(overrides))


def _patch_of(section: type[Section]) -> type[Section]:
    """The same section with every field optional, nested ones too: what a PUT may bring."""
    fields: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        kind = field.annotation
        inner = kind if isinstance(kind, type) and issubclass(kind, Section) else None
        constrained = Annotated[(kind, *field.metadata)] if field.metadata else kind
        annotation: Any = _patch_of(inner) if inner else constrained
        fields[name] = (annotation | None, Field(None, description=field.description))
    return create_model(f"{section.__name__}Patch", __base__=Section, __doc__=section.__doc__, **fields)


def _history_of(edges: Sequence[str]) -> type[HistorySettings]:
    """`HistorySettings` with a choice of these edges."""
    choice: Any = Literal[tuple(edges)]
    field = Field(edges[0], description=HistorySettings.model_fields["edges"].description)
    fields: dict[str, Any] = {"edges": (choice, field)}
    return create_model("HistorySettings", __base__=HistorySettings, __doc__=HistorySettings.__doc__, **fields)


class SettingsSchema:
    """The models of a chat's settings with the sections and the edges of some layers.

    The first of the edges is the default.

    Attributes:
        whole: Every setting, as it takes effect.
        patch: What a request may give: any part of them, null to return to the preset's value.

    """

    def __init__(self, sections: Sequence[type[LayerSettings]], edges: Sequence[str] = ()) -> None:
        fields: dict[str, Any] = {one.section: (one, Field(one(), description=_summary(one))) for one in sections}
        history = _history_of((*edges, *OWN_EDGES))
        fields["history"] = (history, Field(history(), description=ChatSettings.model_fields["history"].description))
        self.whole: type[ChatSettings] = create_model("ChatSettings", __base__=ChatSettings, **fields)
        self.whole.__doc__ = "Every setting of a chat, as it takes effect."
        self.patch: type[Section] = _patch_of(self.whole)


_schema: SettingsSchema | None = None


def use_sections(sections: Sequence[type[LayerSettings]], edges: Sequence[str]) -> None:
    """Have chats of this process know the sections and edges of these layers; `app/registry.py` calls it."""
    global _schema
    _schema = SettingsSchema(sections, edges)
    effective_json.cache_clear()


def schema() -> SettingsSchema:
    """The schema in use. Raises RuntimeError before the registry was imported."""
    if _schema is None:
        raise RuntimeError("the settings have no layers yet: import app.registry first")
    return _schema


class _InUse:
    """A type for fields of HTTP bodies whose model is the one of the schema in use, in OpenAPI too."""

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
    """The settings of a request."""

    @classmethod
    def model(cls) -> type[Section]:
        """What a request may give."""
        return schema().patch


class EffectiveSettings(_InUse):
    """The settings of an answer."""

    @classmethod
    def model(cls) -> type[Section]:
        """Every setting."""
        return schema().whole


def _summary(section: type[Section]) -> str:
    return (section.__doc__ or "").partition("\n")[0]
