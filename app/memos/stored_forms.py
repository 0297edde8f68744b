"""The forms of the JSON that the layer stores on a line's row and in its table. Pure."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from app.layers.stored_forms import StoredFilters, StoredRange
from app.layers.stored_json import MAX_STORED, Number, StoredJson, UuidText
from app.memos.highlights import Category

SortKey = Annotated[int, Field(ge=0, le=2 * MAX_STORED + 1)]


class StoredBatch(StoredJson):
    """`OpenBatch` of `batches.py`."""

    first_seq: Annotated[Number, Field(ge=1)]
    size: Annotated[Number, Field(ge=1)]
    filters: StoredFilters
    count: Number


class StoredHighlight(StoredJson):
    """`Highlight` of `highlights.py`."""

    text: str
    category: Category | None = None


class CachedMemo(StoredJson):
    """A memo of the window."""

    id: UuidText
    number: Number
    sort_key: SortKey
    first_seq: Number | None
    last_seq: Number | None
    text: str
    tokens: Number
    stale: bool

    @model_validator(mode="after")
    def _has_a_range(self) -> Self:
        if (self.first_seq is None) != (self.last_seq is None):
            raise ValueError("must have both first_seq and last_seq, or neither")
        return self


class CachedWindow(StoredJson):
    """What `make_window` of `window.py` returns."""

    memos: list[CachedMemo] = Field(default_factory=list)
    pinned: list[CachedMemo] = Field(default_factory=list)
    gaps: list[StoredRange] = Field(default_factory=list)
