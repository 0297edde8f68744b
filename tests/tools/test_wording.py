"""The descriptions of the tools for models, and the error texts for wrong calls."""

from typing import Any

import pytest
from anthropic.types import ToolParam
from openai.types.chat import ChatCompletionToolParam
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from app.diary.tools import SaveMemory
from app.kit.wire import Text
from app.layers.tool import Tool
from app.registry import LAYERS
from app.tools.toolbox import list_tools
from app.tools.wording import word_tool, word_wrong

_OPENAI = TypeAdapter(ChatCompletionToolParam)
_ANTHROPIC = TypeAdapter(ToolParam)


class Searching(BaseModel):
    """A tool with more arguments than there are yet."""

    model_config = ConfigDict(extra="forbid")

    query: Text = Field(description="What for.", max_length=9)
    limit: int = Field(10, ge=1, le=100, description="How many.")


SEARCH = ("memory_search", "Searches.", Searching.model_json_schema())


@pytest.mark.parametrize("tool", list_tools(LAYERS), ids=lambda tool: tool.name)
def test_a_tool_is_what_the_clients_own_types_accept(tool: Tool) -> None:
    schema = tool.arguments.model_json_schema()
    _OPENAI.validate_python(word_tool(tool.name, tool.description, schema, "openai"), strict=True)
    _ANTHROPIC.validate_python(word_tool(tool.name, tool.description, schema, "anthropic"), strict=True)


@pytest.mark.parametrize("tool", list_tools(LAYERS), ids=lambda tool: tool.name)
def test_every_tool_and_every_argument_says_what_it_is_for(tool: Tool) -> None:
    told = word_tool(tool.name, tool.description, tool.arguments.model_json_schema(), "anthropic")
    assert told["description"]
    for argument in told["input_schema"]["properties"].values():
        assert argument["type"]
        assert argument["description"]
    tool.arguments.model_validate(tool.example)


def test_limits_that_servers_reject_are_only_in_descriptions() -> None:
    told = word_tool("save_memory", "Saves.", SaveMemory.model_json_schema(), "openai")
    (content,) = told["function"]["parameters"]["properties"].values()
    assert content.keys() == {"type", "description"}
    assert "4,000 characters" in content["description"]


def test_optional_parameters_have_defaults() -> None:
    parameters = word_tool(*SEARCH, "openai")["function"]["parameters"]
    assert parameters["required"] == ["query"]
    assert parameters["properties"]["limit"] == {"type": "integer", "description": "How many.", "default": 10}
    assert parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ("{}", "query is missing"),
        ("[]", "The arguments must be one JSON object"),
        ('{"query": ', "The arguments are not valid JSON"),
        ('{"query": 5}', "query must be a string"),
        ('{"query": "0123456789"}', "query is too long: at most 9 characters"),
        ('{"query": "nul \\u0000"}', "query may not contain the NUL character"),
        ('{"query": "x", "text": "y"}', "There is an argument that the tool does not take"),
        ('{"query": "x", "limit": 0}', "limit must be greater than or equal to 1"),
        ('{"limit": "many"}', "query is missing; limit must be a valid integer"),
    ],
)
def test_an_error_names_the_fault_and_a_correct_call(given: str, wrong: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Searching.model_validate_json(given)
    errors: list[Any] = [{**found, "loc": ("body", *found["loc"])} for found in refused.value.errors()]
    told = word_wrong("memory_search", errors, {"query": "lamp"})
    assert told.startswith(wrong)
    assert told.endswith('. Call memory_search with {"query":"lamp"}.')
