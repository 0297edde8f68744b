"""JSON that models answer with, as labelled lines."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memos.answer_json import json_as_lines

NAMED, GAVE = "Mira named the cat.", "Jonas gave Mira the key."


def lines_of(value: Any) -> list[str]:
    """What is said of each highlight in `value`."""
    text = json_as_lines(json.dumps(value))
    if text == "NONE":
        return []
    return [line.removeprefix("【Highlight 1】: ") for line in text.split("\n")]


@pytest.mark.parametrize(
    ("value", "sentences"),
    [
        ([], []),
        ([None], []),
        ({"highlights": None}, []),
        ({"highlights": [], "memos": []}, []),
        ([NAMED, None, 7], [NAMED]),
        ({"text": NAMED, "highlights": [GAVE]}, [NAMED]),
        ({"text": 7, "highlights": [GAVE]}, [GAVE]),
        ({"text": NAMED, "content": GAVE}, [NAMED]),
        ({"category": "milestone", "type": "keepsake", "text": NAMED}, [f"(milestone) {NAMED}"]),
        ({"category": "other", "type": "keepsake", "text": NAMED}, [f"(keepsake) {NAMED}"]),
        ({"category": "milestone", "facts": [NAMED]}, [f"(milestone) {NAMED}"]),
        ({"category": "milestone", "facts": [{"kind": "keepsake", "fact": GAVE}]}, [f"(keepsake) {GAVE}"]),
        ({"milestones": {"keepsakes": [GAVE]}}, [f"(keepsake) {GAVE}"]),
        ({"1": NAMED, "2": {"memory": GAVE}}, [NAMED, GAVE]),
        ({"TEXT": "Mira\n named\tthe cat."}, [NAMED]),
        ({"TEXT": ""}, [""]),
    ],
)
def test_sentences_are_found_where_models_put_them(value: Any, sentences: list[str]) -> None:
    assert lines_of(value) == sentences


@pytest.mark.parametrize("value", [{}, [7], [True, {}], {"speaker": NAMED}, {"error": [NAMED]}, [[{"highlights": 3}]]])
def test_json_without_highlights_stays_as_it_is(value: Any) -> None:
    text = json.dumps(value)
    assert json_as_lines(text) == text


@pytest.mark.parametrize("text", ["", "No JSON.", "[cut off", "{'single': 'quotes'}", '【Highlight 1】: x\n["y"]'])
def test_text_that_is_not_json_is_left_unchanged(text: str) -> None:
    assert json_as_lines(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f'Here:\n  ["{NAMED}", "{GAVE}",]\nDone.',
        f'{{"text": "{NAMED}"}}\n{{"text": "{GAVE}"}}',
        f'[{{"text": "{NAMED}"}}\n {{"text": "{GAVE}",}}]',
    ],
)
def test_common_faults_in_json_are_mended(text: str) -> None:
    assert json_as_lines(text) == f"【Highlight 1】: {NAMED}\n【Highlight 1】: {GAVE}"


KEYS = st.sampled_from(["highlights", "Memos", "result_2", "answer", "3"])
SENTENCES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4).map(" ".join)


@st.composite
def wrapped(draw: st.DrawFn, depth: int = 3) -> tuple[Any, list[str] | None]:
    """A JSON value in which highlights are wrapped somehow, and its sentences by the rules spelled out."""
    shape = draw(st.sampled_from(["text", "field", "none", "noise", "list", "object"][: None if depth else 4]))
    if shape in ("text", "field"):
        sentence = draw(SENTENCES)
        return (sentence if shape == "text" else {"score": 1, "Content": sentence}), [sentence]
    if shape == "none":
        return draw(st.sampled_from([None, []])), []
    if shape == "noise":
        return draw(st.sampled_from([0, True, {}, {"speaker": "x"}])), None
    parts = draw(st.lists(wrapped(depth - 1), min_size=1, max_size=4))
    if shape == "object":
        keys = draw(st.lists(KEYS, min_size=len(parts), max_size=len(parts), unique=True))
        value: Any = {"note": "x"} | {key: part for key, (part, _) in zip(keys, parts, strict=True)}
    else:
        value = [part for part, _ in parts]
    said = [sentences for _, sentences in parts if sentences is not None]
    return value, [sentence for sentences in said for sentence in sentences] if said else None


@given(wrapped())
def test_wrapped_sentences_come_out_in_their_order(given_value: tuple[Any, list[str] | None]) -> None:
    value, sentences = given_value
    if not isinstance(value, (list, dict)):
        value = [value]
    if sentences is None:
        assert json_as_lines(json.dumps(value)) == json.dumps(value)
    else:
        assert lines_of(value) == sentences
