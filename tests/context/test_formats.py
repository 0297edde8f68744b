"""What holds for every format, whatever is said."""

from collections.abc import Iterable
from typing import Any

import pytest
from anthropic.types import MessageParam, TextBlockParam
from hypothesis import given
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from app.context.formats import count_tokens_of, render, word
from app.context.order import arrange
from app.context.parts import Parts
from app.context.segments import Arrangement, Format, Rendered, RenderOptions
from app.kit.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from tests.context.arrangements import (
    all_segments,
    entry,
    manners,
    parts,
    render_options,
    rendered,
    segment,
    talk,
    texts_of,
)
from tests.talk import FORMATS

_OPENAI = TypeAdapter(list[ChatCompletionMessageParam])
_ANTHROPIC = TypeAdapter(list[MessageParam])
_SYSTEM = TypeAdapter(list[TextBlockParam])


def plan_of(drawn: Parts) -> Arrangement:
    return arrange(all_segments(drawn), drawn.history, drawn.newest, drawn.anchor_seq)


@given(parts(), manners())
def test_messages_match_the_types_of_the_client_libraries(drawn: Parts, how: RenderOptions) -> None:
    answer = rendered(plan_of(drawn), how)
    if how.format == "openai":
        _OPENAI.validate_python(answer.messages, strict=True)
        check_openai(answer.messages or [])
    elif how.format == "anthropic":
        _ANTHROPIC.validate_python(answer.messages, strict=True)
        _SYSTEM.validate_python(answer.system, strict=True)
        check_anthropic(answer, how)


def check_openai(messages: list[dict[str, Any]]) -> None:
    """What OpenAI refuses beyond its types: a call that is not answered at once, an answer to no call."""
    awaited: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            awaited.remove(message["tool_call_id"])
            continue
        assert not awaited
        awaited = {one["id"] for one in message.get("tool_calls", [])}
        assert message["content"] or awaited
    assert not awaited


def check_anthropic(answer: Rendered, how: RenderOptions) -> None:
    """What Anthropic refuses beyond its types."""
    messages = answer.messages or []
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
    assert all(text.strip() for text in texts_of(answer))
    blocks = [*(answer.system or []), *(block for message in messages for block in message["content"])]
    assert sum("cache_control" in block for block in blocks) == len(answer.breakpoints) <= 4
    if roles and roles[-1] == "assistant":
        assert how.prefill
        assert not messages[-1]["content"][-1]["text"][-1].isspace()


@given(parts(), manners())
def test_the_tokens_are_never_fewer_than_what_is_sent(drawn: Parts, how: RenderOptions) -> None:
    layout = word(plan_of(drawn), how)
    answer = render(layout)
    overhead = MESSAGE_OVERHEAD_TOKENS * (len(answer.messages or []) + bool(answer.system or answer.text))
    sent = sum(count_tokens(text) for text in texts_of(answer)) + overhead
    assert sent * how.token_factor <= answer.tokens
    assert answer.tokens == count_tokens_of(layout)


@given(parts(), manners())
def test_every_text_name_and_tool_call_is_sent(drawn: Parts, how: RenderOptions) -> None:
    """Every text, every name and every call of a tool is in what is sent, one way or another."""
    arrangement = plan_of(drawn)
    answer = rendered(arrangement, how)
    sent = str(answer.messages or "") + str(answer.system or "") + "".join(texts_of(answer))
    everything = "".join(texts_of(answer))
    for one in (*arrangement.prefix, *arrangement.in_chat, *arrangement.volatile):
        assert one.text.strip() in everything
    for said in (*arrangement.history, *([arrangement.newest] if arrangement.newest else [])):
        assert said.text.strip() in everything
        if said.tool_calls and how.format in ("anthropic", "text"):
            assert "[calls " in everything
        if said.name and said.text.strip() and said.name != how.style.character and not said.tool_call_id:
            assert " ".join(said.name.split()) in sent


@given(parts(), manners())
def test_every_segment_is_listed_once_with_its_sources(drawn: Parts, how: RenderOptions) -> None:
    arrangement = plan_of(drawn)
    rows = rendered(arrangement, how).segments
    shown = [one.name for one in (*arrangement.prefix, *arrangement.in_chat, *arrangement.volatile) if one.text.strip()]
    said = [one for one in arrangement.history if one.tool_calls or one.text.strip()]
    names = [row["name"] for row in rows]
    assert sorted(name for name in names if name not in ("history", "newest")) == sorted(shown)
    assert [row["sources"] for row in rows if row["name"] == "history"] == (
        [[f"message:{one.message_id}" for one in said]] if said else []
    )
    assert ("newest" in names) == bool(arrangement.newest and arrangement.newest.text.strip())


@pytest.mark.parametrize("fmt", FORMATS)
def test_an_empty_chat_gives_an_empty_context(fmt: Format) -> None:
    answer = rendered(Arrangement(), render_options(fmt))
    assert (answer.tokens, answer.segments, list(answer.breakpoints)) == (0, [], [])
    assert not answer.messages
    assert not answer.system
    assert not answer.text


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_text_that_is_not_altered_is_not_counted_again(fmt: Format) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return count_tokens(text)

    how = render_options(fmt)
    arrangement = Arrangement(prefix=[segment("system"), segment("memos")], history=talk(4), newest=entry(5))
    rendered(arrangement, RenderOptions(how.format, how.style, how.prefill, how.token_factor, count))
    assert {"The system.", "The memos."}.isdisjoint(counted)
    assert fmt in ("text", "segments") or not counted


def test_the_token_factor_is_applied_to_the_sum_and_rounded_up() -> None:
    arrangement = Arrangement(history=[entry(1, text="Hello.")])
    assert rendered(arrangement, render_options("openai")).tokens == 6
    assert rendered(arrangement, render_options("openai", factor=1.35)).tokens == 9
    assert rendered(arrangement, render_options("openai", factor=1.5)).tokens == 9


def where(answer: Rendered, text: str) -> Iterable[int]:
    return [index for index, one in enumerate(texts_of(answer)) if text in one]


@pytest.mark.parametrize(("depth", "place"), [(0, 5), (1, 4), (3, 2), (5, 0), (99, 0)])
def test_a_callers_segment_in_the_chat_is_at_its_depth(depth: int, place: int) -> None:
    note = segment("note", "A note.", after="in_chat", depth=depth)
    answer = rendered(Arrangement(history=talk(4), in_chat=[note], newest=entry(5)), render_options("openai"))
    assert where(answer, "A note.") == [place]
