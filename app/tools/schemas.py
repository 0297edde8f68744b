"""The request and response models of tools."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import Name


class CallQuery(BaseModel):
    """The query parameters of a tool call."""

    model_config = ConfigDict(extra="ignore")

    character: Name | None = Field(
        None,
        description="The character that calls the tool; required unless the chat has one active character or names "
        "none. In a chat that names none, each name has a diary of its own, up to 32.",
    )


class ToolsOut(BaseModel):
    """The tools in the format of a provider."""

    tools: list[dict[str, Any]] = Field(description="The value of `tools` in a request to the provider.")


class ToolResultOut(BaseModel):
    """The result of a tool call."""

    ok: bool = Field(description="Always true; errors are problem documents.")
    result: str = Field(description="The content of the tool result, addressed to the model.")
