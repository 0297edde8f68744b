"""What goes over the wire about tools."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import Name


class CallQuery(BaseModel):
    """Who calls a tool."""

    model_config = ConfigDict(extra="ignore")

    character: Name | None = Field(
        None,
        description="Which character calls it; not needed where only one is named, or none. "
        "In a chat that names none every name has a diary of its own, up to 32.",
    )


class ToolsOut(BaseModel):
    """The tools, ready to be sent."""

    tools: list[dict[str, Any]] = Field(description="What goes into `tools` of a request to the provider.")


class ToolResultOut(BaseModel):
    """What became of a call."""

    ok: bool = Field(description="Always true: what could not be done is a problem document.")
    result: str = Field(description="In words for the model: the content of the tool's result.")
