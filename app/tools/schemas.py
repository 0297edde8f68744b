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
        description="The character that calls the tool; required unless the chat has exactly one active character or "
        "no list of characters. In a chat without such a list, each name that is sent here has a diary of its own, up "
        "to 32.",
    )
    message_id: MessageId | None = Field(
        None,
        description="The id of the assistant message that the call belongs to; it can be appended later. By default, "
        "the call belongs to the newest message if that is a reply of any character, else to the next reply of the "
        "character that calls.",
    )
    swipe: Literal["next"] | None = Field(
        None,
        description="`next` if another text of the message `message_id` is being generated. The call then belongs to "
        "the next new text of this message, whether it comes by an added swipe, an edit or a re-import. "
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
    """A call of a tool."""

    id: UUID = Field(description="Its id. What the call wrote, such as a diary entry, has the same id.")
    tool: str = Field(description="The tool's name, as the model gave it.")
    character: str | None = Field(description="The character that called it; null if it has no name or is unknown.")
    arguments: Any = Field(
        description="The arguments of the call. Null if they were not stored (too long, not JSON, or sent to an old "
        "release), and on a line that has only a copy of what the call wrote. A token that is limited to the chat also "
        "gets null for calls that were made without this limit."
    )
    outcome: Literal["wrote", "read", "refused"] = Field(
        description="`wrote` if it wrote something, `read` if it only read, `refused` if it was refused and wrote "
        "nothing."
    )
    status: Literal["open", "shown", "hidden", "dropped"] | None = Field(
        description="For a call that wrote something: `open` until its reply is appended, then `shown` while the reply "
        "has the text that the call belongs to, and `hidden` while the reply has another text, is deleted, or is "
        "hidden by a person. `dropped` if the generation was discarded or the reply was cut off. Null for other calls."
    )
    effect: str = Field(
        description="What it wrote and whether that is shown, or the answer to the call, in words; long texts are "
        "shortened."
    )
    message_id: str | None = Field(
        description="The id of the reply. For an open call: the id that the call named, or null. Null for a call that "
        "is bound to no reply."
    )
    at_seq: int = Field(description="The seq of the reply; without one, the newest seq when the tool was called.")
    created_at: datetime = Field(description="When the tool was called.")


class ToolsOut(BaseModel):
    """The tools in the format of a provider."""

    tools: list[dict[str, Any]] = Field(description="The value of `tools` in a request to the provider.")


class ToolResultOut(BaseModel):
    """The result of a tool call."""

    ok: bool = Field(description="Always true; errors are problem documents.")
    result: str = Field(description="The content of the tool result, addressed to the model.")
