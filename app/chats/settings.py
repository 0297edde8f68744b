"""The settings of a chat, nested by layer, on top of the preset that gives their defaults. Pure.

A chat stores only what differs from its preset. The whole schema is here, also for layers that are still to
come, so that a preset means the same thing before and after.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from app.chats.presets import PRESETS
from app.kit.blame import FieldError, place_of

log = logging.getLogger(__name__)

PresetName = Literal["memo", "diary", "scenes", "agent", "decay", "companion"]
Edges = Literal["batches", "folds", "scenes", "every_8", "every_message"]
Scope = Literal["chat", "character", "user", "global"]

FORCED_MARGIN_MESSAGES = 32
"""How far a history may outgrow its limit at least while it waits for memos."""

BUILT_LAYERS = frozenset({"memos", "summary", "diary", "scenes"})
"""The layers that this version makes; `/v1/presets` says which of a preset's are missing."""


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
    edges: Edges = Field("batches", description="Where a cut may fall.")
    keep_scenes: int = Field(2, ge=0, le=50, description="With scene edges: a cut also leaves the last so many scenes.")

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.max_messages is not None and self.max_messages <= self.keep_messages + self.grow_messages:
            raise FieldError(("max_messages",), "must be more than keep_messages + grow_messages")
        return self


class MemoSettings(Section):
    """Memos: 2–3 highlights for every few messages."""

    enabled: bool = Field(
        True,
        description="Whether batches are formed and memos made. Switched on in a chat that ran without, "
        "it takes up what is in the history and as much before it as the window shows.",
    )
    every_messages: int = Field(8, ge=1, le=64, description="Eligible messages in a batch.")
    window: int = Field(15, ge=0, le=200, description="How many of the newest memos go into the prompt.")
    include_user: bool = Field(True, description="Whether the user's messages are summarised.")
    include_system: bool = Field(False, description="Whether system messages are summarised.")
    include_narrator: bool = Field(True, description="Whether the narrator's messages are summarised.")
    min_tokens: int = Field(0, ge=0, le=100_000, description="Shorter messages are not summarised.")
    budget: Budget | None = Field(None, description="The most that memos may take; null is no limit of their own.")
    pinned_budget: Budget | None = Field(None, description="The most that pinned memos may take.")


class PinnedSettings(Section):
    """Pinned messages: kept verbatim once they are out of the history."""

    budget: Budget | None = Field(None, description="The most that pinned messages may take.")


class SummarySettings(Section):
    """The rolling summary."""

    enabled: bool = Field(False, description="Whether old messages are folded into a summary.")
    threshold_messages: int = Field(20, ge=2, le=1_000, description="Uncovered messages that start a fold.")
    keep_messages: int = Field(15, ge=1, le=1_000, description="The newest messages that are never folded.")


class DiarySettings(Section):
    """The character's diary."""

    enabled: bool = Field(
        False,
        description="Whether diaries are folded, and the service may write into them. "
        "What a character or a person wrote is shown all the same.",
    )
    lines: int = Field(50, ge=1, le=500, description="How many of the last lines go into the prompt.")
    auto_write_turns: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Write an entry every so many turns without a tool call; null is off.",
    )


class RecapSettings(Section):
    """The running recap of all scenes, and where it is injected."""

    exclude_latest: int = Field(0, ge=0, le=100, description="The newest scenes that are left out.")
    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "before_prompt", description="Where the recap goes; SillyTavern's numbers are accepted."
    )
    depth: int = Field(2, ge=0, le=1_000, description="With `in_chat`: messages back from the end.")
    role: Literal["system", "user", "assistant"] = Field("system", description="With `in_chat`: who says it.")
    scan: bool = Field(False, description="Handed through for a caller with a lorebook.")


class SceneSettings(Section):
    """Scenes and their recaps."""

    enabled: bool = Field(False, description="Whether scenes are kept.")
    detect: bool = Field(True, description="Whether breaks are looked for after the assistant's message.")
    offset: int = Field(2, ge=0, le=50, description="The newest messages that only give context.")
    min_messages: int = Field(10, ge=1, le=1_000, description="A scene is at least so long.")
    max_messages: int = Field(100, ge=10, le=1_000, description="The most messages read in one look.")
    auto_hide: int | None = Field(2, ge=-1, le=1_000, description="Hide all but the last so many; -1: none.")
    recap: RecapSettings = Field(RecapSettings(), description="The running recap.")


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
    """Every setting of a chat, as it takes effect."""

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
    memos: MemoSettings = Field(MemoSettings(), description="Memos.")
    pinned: PinnedSettings = Field(PinnedSettings(), description="Pinned messages.")
    summary: SummarySettings = Field(SummarySettings(), description="The rolling summary.")
    diary: DiarySettings = Field(DiarySettings(), description="The diary.")
    scenes: SceneSettings = Field(SceneSettings(), description="Scenes.")
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
        return history.keep_messages + history.grow_messages + max(FORCED_MARGIN_MESSAGES, self.memos.every_messages)

    def missing_layers(self) -> list[str]:
        """Layers that are switched on and not built yet."""
        layers = {
            "memos": self.memos.enabled,
            "summary": self.summary.enabled,
            "diary": self.diary.enabled,
            "scenes": self.scenes.enabled,
            "consolidation": self.consolidation.enabled,
            "recall": self.recall.mode != "off",
        }
        return [name for name, on in layers.items() if on and name not in BUILT_LAYERS]


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
    return ChatSettings.model_validate(merge(defaults, overrides))


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


SettingsPatch = _patch_of(ChatSettings)
"""What a request may say of settings: any part of them, null to return to the preset's value."""
