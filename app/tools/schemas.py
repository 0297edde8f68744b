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
        description="The character that calls the tool. May be left out if the chat lists no characters, or "
        "exactly one that is not disabled. If the chat lists none, each name that is sent here has a diary of its own, "
        "up to 32.",
    )
    message_id: MessageId | None = Field(
        None,
        description="The id of the assistant message that the call belongs to; it can be appended later.",
    )
    swipe: Literal["next"] | None = Field(
        None,
        description="`next` if a stored message is about to get another text. `message_id` names the message; without "
        "`message_id`, it is the newest message, which must be a reply. The call belongs to the next new text that the "
        "message gets by an added swipe, an edit or a re-import.",
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

    id: UUID = Field(description="The id of the call, and of what it wrote, such as a diary entry.")
    tool: str = Field(description="The tool's name, as it was called.")
    character: str | None = Field(description="The character that called it; null if it is unknown or has no name.")
    arguments: Any = Field(
        description="The arguments. Null if they were not stored (too long, for example), or if the call was made on "
        "another line. A token that is limited to the chat reads only the arguments of calls that were made with "
        "such a token."
    )
    outcome: Literal["wrote", "read", "refused"] = Field(description="What it did. A refused call wrote nothing.")
    status: Literal["open", "shown", "hidden", "dropped"] | None = Field(
        description="Null unless the call wrote something. `open`: its reply is not appended yet. `shown`: the reply "
        "has the text that the call belongs to. `hidden`: the reply has another text, is deleted, or is hidden by a "
        "person. `dropped`: the generation was discarded, or the reply was cut off."
    )
    effect: str = Field(
        description="What the call wrote and whether contexts contain it, or its answer; long texts are shortened."
    )
    message_id: str | None = Field(
        description="The id of the reply. Null if there is none, or if the call is open and did not name it."
    )
    at_seq: int = Field(description="The seq of the reply; without one, the newest seq at the time of the call.")
    created_at: datetime = Field(description="When it was made.")


class ToolsOut(BaseModel):
    """The tools in the format of a provider."""

    tools: list[dict[str, Any]] = Field(description="The value of `tools` in a request to the provider.")


class ToolResultOut(BaseModel):
    """The result of a tool call."""

    ok: bool = Field(description="Always true; errors are problem documents.")
    result: str = Field(description="What to send to the model as the result.")
