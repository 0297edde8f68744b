"""The forms of the JSON that the layer stores on a line's row."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from app.kit.wire import TimeZone
from app.layers.stored_forms import StoredPeriod, StoredSpan, StoredWork
from app.layers.stored_json import IsoTime, Number, StoredJson, UuidText

_Microseconds = Annotated[int, Field(ge=-(2**62), le=2**62)]
_Entry = Annotated[tuple[UuidText, Number, Number, str, IsoTime, _Microseconds], Field(strict=False)]
_Elsewhere = Annotated[tuple[UuidText, UuidText], Field(strict=False)]
_Position = Annotated[tuple[_Microseconds, str], Field(strict=False)]


class StoredNumbers(StoredJson):
    """The layer's cursor."""

    number: Number
    outdated: bool | str | list[str] | None = None
    period: StoredPeriod | None = None


class StoredWriting(StoredSpan):
    """The period that the service's next entry of a character is about, and the number of this entry."""

    number: Annotated[Number, Field(ge=1)]


class StoredEntryWork(StoredWork):
    """The work item of an entry that was never written (`writing_work` in `handlers.py`)."""

    payload: StoredWriting

    @model_validator(mode="after")
    def _has_its_key(self) -> Self:
        begins = f"write:{self.payload.first_seq}:"
        if not self.key.startswith(begins):
            raise ValueError(f"key must be {begins} and the name of a character")  # "" if the chat names none
        return self


class CachedHeld(StoredJson):
    """`Held` of `held.py`."""

    version: Number | None
    covered: Number
    after: Number
    numbers: list[Number]
    lost: "CachedHeld | None" = None


class CachedOwn(StoredJson):
    """`Own` of `shared/merging.py`."""

    time_zone: TimeZone
    version: Number | None
    folded: str
    held: list[_Entry]
    recent: list[_Entry]
    older_tokens: Number


class CachedChoice(StoredJson):
    """`Choice` of `shared/merging.py`."""

    held: list[_Elsewhere]
    after: _Position | None


class CachedRecent(StoredJson):
    """What `word_recent` of `held.py` returns."""

    text: str
    tokens: Number
    sources: list[str]
    left_out_tokens: Number = 0


class CachedTexts(StoredJson):
    """The texts of a character's diary. Early releases stored no `held`."""

    held: CachedHeld | None = None
    text: str | None = None
    tokens: Number | None = None
    sources: list[str] | None = None
    version: Number | None = None
    last_seq: Number = 0
    recent: CachedRecent | None = None
    own: CachedOwn | None = None
    shared: CachedChoice | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if nulls := [name for name in ("held", "text", "own", "shared") if self._is_null(name)]:
            raise ValueError(f"must not have null as its {nulls[0]}")
        if not (self.text is None) == (self.tokens is None) == (self.sources is None):
            raise ValueError("must have text, tokens and sources, or none of them")
        return self

    def _is_null(self, name: str) -> bool:
        return name in self.model_fields_set and getattr(self, name) is None


class CachedDiaries(StoredJson):
    """What `context_cache` contains: the texts of all diaries. Early releases stored no `anchor_seq`."""

    anchor_seq: Number | None = None
    characters: dict[str, CachedTexts]
