"""The forms of JSON that several layers store: filters, open periods, refusals, cached narratives. Pure."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from app.layers.stored_json import Number, StoredJson

StoredRange = Annotated[list[Number], Field(min_length=2, max_length=2)]


class StoredFilters(StoredJson):
    """`Filters` of `app/chats/eligibility.py`."""

    include_user: bool = True
    include_system: bool = False
    include_narrator: bool = True
    min_tokens: Number = 0
    disabled: list[str] = Field(default_factory=list)


class StoredPeriod(StoredJson):
    """`OpenPeriod` of `turns.py`."""

    first_seq: Number
    turns: Number = 0
    awaits_reply: bool = False


class StoredSpan(StoredJson):
    """The messages that a work item is about; both seqs are inclusive."""

    first_seq: Annotated[Number, Field(ge=1)]
    last_seq: Number

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        if self.last_seq < self.first_seq:
            raise ValueError("must not end before it begins")
        return self


class StoredWork(StoredJson):
    """A work item about messages that no row of its layer is about yet (`Layer.planned`)."""

    key: Annotated[str, Field(max_length=300)]
    at_seq: Number
    payload: StoredSpan

    @model_validator(mode="after")
    def _is_where_it_begins(self) -> Self:
        if self.at_seq != self.payload.first_seq:
            raise ValueError("at_seq must be the first_seq of the payload")
        return self


class StoredRefusal(StoredJson):
    """A refused answer of a model."""

    kind: str
    reason: str


class CachedNarrative(StoredJson):
    """What `context_cache` contains of a summary or a recap: the version that contexts show, the gaps and the edges."""

    version: Number | None = None
    text: str | None = None
    tokens: Number | None = None
    last_seq: Number | None = None
    stale: bool | None = None
    gaps: list[StoredRange] = Field(default_factory=list)
    edges: list[Number] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        version = {"version", "text", "tokens", "last_seq", "stale"}
        given = {name for name in version if getattr(self, name) is not None}
        if given and given != version:
            raise ValueError(f"must have {min(version - given)}, too")
        return self
