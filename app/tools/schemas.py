"""The request and response models of tools."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.bindings.rule import Target
from app.kit.wire import Name
from app.messages.schemas import MessageId


class CallQuery(BaseModel):
    """The query parameters of a tool call."""

    model_config = ConfigDict(extra="ignore")

    character: Name | None = Field(
        None,
        description="The character that calls the tool; required unless the chat has one active character or names "
        "none. In a chat that names none, each name has a diary of its own, up to 32.",
    )
    message_id: MessageId | None = Field(
        None,
        description="The id of the assistant message that the call belongs to; it may still be to come. By default, "
        "the call belongs to the newest message if that is a reply of any character, else to the next reply of the "
        "character that calls.",
    )
    swipe: Literal["next"] | None = Field(
        None,
        description="`next` if the call belongs to the swipe that is being generated for the message `message_id`: to "
        "the next new text that the message gets by an added swipe, an edit or a re-import. "
        "Without `message_id`, the message is the newest one, which must then be a reply.",
    )

    @property
    def target(self) -> Target:
        """What the query says about the reply that the call belongs to."""
        return Target(self.message_id, self.swipe is not None)


class DiscardQuery(BaseModel):
    """The query parameters of a discard."""

    model_config = ConfigDict(extra="ignore")

    character: Name | None = Field(
        None, description="Drop only the calls of this character; by default those of all characters."
    )


class DiscardedOut(BaseModel):
    """The result of a discard."""

    discarded: int = Field(description="The number of calls that were dropped.")


class CallOut(BaseModel):
    """A call of a tool that wrote something."""

    id: UUID = Field(description="The id of what it wrote, such as a diary entry.")
    tool: str = Field(description="The tool's name.")
    character: str | None = Field(description="The character that called it; null for the unnamed character.")
    status: Literal["open", "shown", "hidden"] = Field(
        description="`open` until the reply is there. Then `shown` while the reply has the text that it had when it "
        "was bound, and `hidden` while it has another one, or is deleted or hidden by a person."
    )
    effect: str = Field(description="What it wrote and whether that is shown, in words; long texts are shortened.")
    message_id: str | None = Field(
        description="The id of the reply; of an open call, the message that it named, or null."
    )
    at_seq: int = Field(description="The seq of the reply; of an open call, the newest seq when the tool was called.")
    created_at: datetime = Field(description="When the tool was called.")


class ToolsOut(BaseModel):
    """The tools in the format of a provider."""

    tools: list[dict[str, Any]] = Field(description="The value of `tools` in a request to the provider.")


class ToolResultOut(BaseModel):
    """The result of a tool call."""

    ok: bool = Field(description="Always true; errors are problem documents.")
    result: str = Field(description="The content of the tool result, addressed to the model.")
