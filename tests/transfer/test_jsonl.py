from typing import Any

import orjson
import pytest

from app.transfer.jsonl import read_jsonl
from app.transfer.transcript import TranscriptError

TIME_WORDS = "must be a time with its time zone as in RFC 3339, such as 2026-05-28T18:30:00Z"


def lines_of(*rows: object) -> str:
    return "\n".join(orjson.dumps(row).decode() for row in rows)


def says(content: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": content} | fields


def test_a_message_keeps_every_field_that_append_takes() -> None:
    message = says(
        "Hello?",
        id="m1",
        role="assistant",
        name="Quill",
        kind="thought",
        sent_at="2025-09-06T18:43:00+01:00",
        importance=0.5,
        tool_calls=[{"id": "c1"}],
        tool_call_id="c0",
        metadata={"mood": None},
    )
    assert read_jsonl(lines_of(message)).messages == [message]


def test_fields_that_append_does_not_take_are_left_out() -> None:
    (message,) = read_jsonl(lines_of(says("Hello?", id="m1", seq=7, tokens=2, name=None))).messages
    assert message == says("Hello?", id="m1")


def test_a_message_without_an_id_is_named_after_its_line() -> None:
    transcript = read_jsonl("\n" + lines_of(says("One."), says("Two.", id="mine"), says("Three.", id=None)))
    assert [message["id"] for message in transcript.messages] == ["line-000002", "mine", "line-000004"]


def test_a_first_line_may_describe_the_chat() -> None:
    chat = {"characters": [{"name": "Quill", "persona": "Brass."}], "time_zone": "Europe/Dublin"}
    transcript = read_jsonl(lines_of({"chat": chat}, says("Late.", role="assistant", name="Someone")))
    assert transcript.chat == chat
    assert len(transcript.messages) == 1


def test_without_characters_those_who_spoke_are_the_characters() -> None:
    replies = [says("Late.", role="assistant", name=name) for name in ("Quill", "Bishop", "Quill", None)]
    assert read_jsonl(lines_of(says("Hello?", name="Nell"), *replies)).chat == {
        "characters": [{"name": "Quill"}, {"name": "Bishop"}]
    }


def test_an_empty_file_is_an_empty_chat() -> None:
    transcript = read_jsonl("\ufeff\r\n \n")
    assert (transcript.chat, transcript.messages, transcript.skipped) == ({}, [], 0)


def test_messages_without_text_are_skipped_unless_they_call() -> None:
    call = says("", role="assistant", tool_calls=[{"id": "c1"}])
    transcript = read_jsonl(lines_of(says(""), says(" \n"), call, says("Hello?")))
    assert [message["content"] for message in transcript.messages] == ["", "Hello?"]
    assert transcript.skipped == 2


def test_only_a_line_feed_ends_a_line() -> None:
    text = '{"role": "user", "content": "one\u2028two\u0085three"}\r\n{"role": "user", "content": "four"}\r\n'
    assert [message["content"] for message in read_jsonl(text).messages] == [
        "one\u2028two\u0085three",
        "four",
    ]


def test_a_content_may_have_a_hundred_thousand_characters() -> None:
    (message,) = read_jsonl(lines_of(says("木" * 100_000))).messages
    assert len(message["content"]) == 100_000


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{", "not JSON at column 2: unexpected end of data"),
        (r'{"role": "user", "content": "\ud83d"}', "not JSON at column 30: no low surrogate in string"),
        ("[" * 100_000, "not JSON at column 1026: depth limit exceeded"),
        ("[]", "must be a JSON object"),
        (lines_of({"content": "Hello?"}), "role: is required"),
        (lines_of({"role": "user", "text": "Hello?"}), "content: is required"),
        (lines_of({"role": "user", "content": 7}), "content: must be a valid string"),
        (lines_of(says("Hello?\0")), "content: must not contain NUL characters"),
        (lines_of(says("x" * 100_001)), "content: must have at most 100000 characters"),
        (lines_of(says("Hello?", id="")), "id: must not be empty"),
        (lines_of(says("Hello?", id="a\nb")), "id: 'a\\nb' is also on line 1; must be unique"),
        (lines_of(says("Hello?", name="\0")), "name: must not contain NUL characters"),
        (lines_of(says("Hello?", name="")), "name: must not be empty"),
        (lines_of(says("Hello?", name="N" * 201)), "name: must have at most 200 characters"),
        (lines_of(says("Hello?", tool_call_id="")), "tool_call_id: must not be empty"),
        (lines_of(says("Hello?", importance=2)), "importance: must be less than or equal to 1"),
        (lines_of(says("Hello?", sent_at="2025-09-06T18:43:00")), f"sent_at: {TIME_WORDS}"),
        (lines_of({"chat": {}}), "role: is required"),
        (lines_of(says("Hello?", swipes=["Hi."])), "swipes: must contain content"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(bad: str, problem: str) -> None:
    with pytest.raises(TranscriptError) as caught:
        read_jsonl(lines_of(says("Hello?", id="a\nb")) + "\n\n" + bad)
    assert str(caught.value) == f"line 3: {problem}"
    assert (caught.value.line, caught.value.problem) == (3, problem)


@pytest.mark.parametrize(
    ("chat", "problem"),
    [([], "chat: must be a JSON object"), ({"persona": "Brass."}, "chat: unknown field 'persona'")],
)
def test_a_bad_header_is_the_problem_of_line_1(chat: object, problem: str) -> None:
    with pytest.raises(TranscriptError, match=f"^line 1: {problem}$"):
        read_jsonl(lines_of({"chat": chat}))
