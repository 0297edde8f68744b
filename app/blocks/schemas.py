"""The request and response models of core blocks."""

from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.blocks.fold import LABELS, MAX_CHARS, Operation
from app.chats.settings import Scope
from app.kit.validation_errors import FieldError
from app.kit.wire import NullAs, RequestModel, Text
from app.knowledge.descriptions import CHARACTER, SCOPE, SOURCES
from app.layers.derived import EDITED, ORIGIN, Origin

BlockText = Annotated[Text, Field(max_length=MAX_CHARS)]

_SOURCES = f"{SOURCES} For the block `facts`, also the memories that its text contains, as `memory:<id>`."
_LABEL = f"One of {', '.join(f'`{label}`' for label in LABELS)}."


def check_operation(operation: str, content: str, pattern: str) -> None:
    """Raise FieldError if the arguments do not fit the operation."""
    if operation == "append" and not content.strip():
        raise FieldError(("content",), "must not be empty with the operation `append`")
    if operation == "search_replace" and not pattern:
        raise FieldError(("search_pattern",), "is required with the operation `search_replace`")
    if operation != "search_replace" and pattern:
        raise FieldError(("search_pattern",), f"must be left out with the operation `{operation}`")


class BlockIn(RequestModel):
    """The whole text of a block."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "Mira, a cartographer. She fears the sea."}]})

    text: BlockText = Field(description="The text. An empty one hides the block, including the texts of wider scopes.")


class BlockEdit(RequestModel):
    """An operation on the text of a block."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"operation": "append", "content": "She has a brother, Tomas."}]}
    )

    operation: Operation = Field(
        description="`replace` writes the whole text, `append` adds a line at the end, `search_replace` replaces all "
        "occurrences of `search_pattern`."
    )
    content: BlockText = Field(description="The new text. Must not be blank with `append`.")
    search_pattern: Annotated[BlockText, NullAs("")] = Field(
        "", description="With `search_replace`: the text to replace, exactly as it is in the block."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_operation(self.operation, self.content, self.search_pattern)
        return self


class BlockOut(BaseModel):
    """A block with its present text."""

    id: UUID = Field(
        description="The id of the last operation that changed the text. If the text consists of memories alone, "
        "the id changes with the newest memory."
    )
    label: str = Field(description=_LABEL)
    text: str = Field(description="The text.")
    left_out: str = Field(
        description="Lines of wider scopes that `text` lacks, because the block would be too long with them."
    )
    scope: Scope = Field(description=SCOPE)
    character: str | None = Field(description=CHARACTER)
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=EDITED)
    sources: list[str] = Field(description=_SOURCES)
    created_at: datetime = Field(description="When the last operation that changed the text was written.")


class FormerBlockOut(BaseModel):
    """An operation on a block, with the text that it made.

    The text of the block `facts` can contain memories. The history shows all of them together, in one or two further
    items with the origin `extractive` and the time of the newest memory.
    """

    id: UUID = Field(description="Its id.")
    operation: Operation = Field(description="What it did.")
    content: str | None = Field(description="What it wrote; null if it deleted all that its scope had written.")
    search_pattern: str | None = Field(description="What it replaced, if it is a `search_replace`.")
    text: str = Field(
        description="The text of the block after the operation. If the scope has no earlier `replace`, the text begins "
        "with what the wider scopes contain now."
    )
    applied: bool = Field(
        description="False if the operation changes nothing at present, because the text lacks its pattern or would "
        "become too long. This happens if an earlier operation is taken back or the text of a wider scope changes."
    )
    scope: Scope = Field(description="Its scope.")
    character: str | None = Field(description=CHARACTER)
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=EDITED)
    created_at: datetime = Field(description="When it was written.")
    held_until: datetime | None = Field(description="When the next operation of its scope followed; null if none did.")
