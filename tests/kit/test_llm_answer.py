from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.llm.answer import Completion, ModelError, needs_correction, read_completion, refusal, refused_parameter
from tests.scripted_model import refuses, says

NOT_JSON = "the model server answers something that is not a JSON object"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def answer_of(message: object, **fields: object) -> bytes:
    return orjson.dumps({"choices": [{"message": message}], **fields})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the model server answers nothing"),
        (b" \n", "the model server answers nothing"),
        (b"<html>Welcome</html>", NOT_JSON),
        (says("cut").body[:60], NOT_JSON),
        (b'{"choices": "\xff"}', NOT_JSON),
        (b"[" * 100_000, NOT_JSON),
        (b"[1]", NOT_JSON),
        (b'{"object": "chat.completion"}', "the model's answer has no choices"),
        (b'{"choices": []}', "the model's answer has no choices"),
        (b'{"choices": [null]}', "the model's answer is empty"),
        (says(None).body, "the model's answer is empty"),
        (says(" \n\x00").body, "the model's answer is empty"),
        (says([{"type": "image_url"}, "x", None]).body, "the model's answer is empty"),
        (
            says(None, finish_reason="content_filter").body,
            "the model's answer was withheld by a content filter",
        ),
        (says(None, reasoning_content="Let me think.").body, "the model thought, but wrote no answer"),
        (says(None, refusal="I cannot help with that.").body, "the model declines to answer"),
    ],
)
def test_an_answer_without_usable_text_is_final(body: bytes, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_completion(body, asked_model="tiny")
    assert (caught.value.reason, caught.value.transient) == (reason, False)


def test_a_completion_is_read() -> None:
    completion = read_completion(says(" A key.\n", finish_reason="length").body, asked_model="tiny")
    assert completion == Completion("A key.", "scripted-1", 120, 30, "length")


def test_missing_or_invalid_usage_stays_unknown() -> None:
    body = answer_of({"content": "Yes."}, model=7, usage={"prompt_tokens": True, "completion_tokens": -1})
    assert read_completion(body, asked_model="tiny") == Completion("Yes.", "tiny")


def test_content_in_parts_is_joined_and_thinking_left_out() -> None:
    parts = [
        {"type": "thinking", "text": "Hm."},
        {"type": "text", "text": "A "},
        {"type": "text", "text": "key."},
    ]
    assert read_completion(says(parts).body, asked_model="tiny").text == "A key."


def test_nul_is_dropped() -> None:
    body = answer_of({"content": "A\x00 key."}, model="ti\x00ny")
    assert read_completion(body, asked_model="x") == Completion("A key.", "tiny")


@pytest.mark.parametrize(
    ("status", "reason", "transient"),
    [
        (302, "the model server redirects, which is not followed (302)", False),
        (400, "the model server refuses the request (400)", False),
        (401, "the model refuses the key (401)", False),
        (403, "the key may not use this model (403)", False),
        (404, "the model server knows no such model or path (404)", False),
        (422, "the model server refuses the request (422)", False),
        (408, "the model server ran out of time (408)", True),
        (429, "the model is rate-limited (429)", True),
        (500, "the model server fails (500)", True),
        (529, "the model server fails (529)", True),
    ],
)
def test_a_status_says_whether_it_may_pass(status: int, reason: str, transient: bool) -> None:
    error = refusal(status)
    assert (error.reason, error.transient) == (reason, transient)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(400, False), (401, True), (402, True), (403, True), (404, True), (429, False), (500, False)],
)
def test_a_reason_says_whether_a_person_has_to_correct_it(status: int, *, expected: bool) -> None:
    error = refusal(status)
    assert needs_correction(error.reason) is expected
    assert error.curable is (expected or error.transient)


def test_an_error_inside_a_success_counts_as_its_status() -> None:
    with pytest.raises(ModelError, match=r"rate-limited \(429\)"):
        read_completion(b'{"error": {"code": 429, "message": "busy"}}', asked_model="tiny")


@pytest.mark.parametrize(
    ("error", "parameter"),
    [
        ({"code": "unsupported_parameter", "param": "max_tokens"}, "max_tokens"),
        ({"code": "unsupported_value", "param": "temperature"}, "temperature"),
        ({"code": "invalid_value", "param": "max_tokens"}, None),
        ({"code": None, "param": None}, None),
    ],
)
def test_a_refused_parameter_is_found_in_the_documented_error(error: dict[str, Any], parameter: str | None) -> None:
    assert refused_parameter(refuses(400, **error).body) == parameter


@given(st.binary() | JSON.map(orjson.dumps) | JSON.map(answer_of) | JSON.map(lambda content: says(content).body))
def test_any_body_gives_a_text_or_a_one_line_error(body: bytes) -> None:
    refused_parameter(body)
    try:
        line = read_completion(body, asked_model="tiny").text
    except ModelError as error:
        line = error.reason if error.reason.isprintable() else ""
    assert line == line.strip() != ""
