from typing import Any

import orjson
import pytest

from app.transfer.sillytavern import read_sillytavern
from app.transfer.transcript import Transcript, TranscriptError

HEADER = {"chat_metadata": {"note_prompt": "Be brief."}, "user_name": "unused", "character_name": "unused"}


def read(*lines: dict[str, Any]) -> Transcript:
    return read_sillytavern("\n".join(orjson.dumps(line).decode() for line in lines))


def says(name: str, mes: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "is_user": name == "Nell", "is_system": False, "mes": mes, "extra": {}} | fields


def test_a_chat_becomes_messages_named_after_their_lines() -> None:
    transcript = read(
        HEADER,
        says("Nell", "Hello?", send_date="September 6, 2025 6:43pm"),
        says("Quill", "Late.", send_date=1757184300000),
    )
    assert transcript.messages == [
        {
            "id": "st-000002",
            "role": "user",
            "name": "Nell",
            "content": "Hello?",
            "sent_at": "2025-09-06T18:43:00+00:00",
        },
        {
            "id": "st-000003",
            "role": "assistant",
            "name": "Quill",
            "content": "Late.",
            "sent_at": "2025-09-06T18:45:00+00:00",
        },
    ]
    assert transcript.chat == {"characters": [{"name": "Quill"}]}


def test_a_first_line_that_is_a_message_is_no_header() -> None:
    assert [message["content"] for message in read(says("Nell", "Hello?")).messages] == ["Hello?"]


def test_the_characters_of_a_group_are_those_who_spoke() -> None:
    transcript = read(
        HEADER,
        says("Quill", "Late."),
        says("Bishop", "Kaw."),
        says("Quill", "Quiet."),
        says("System", "Rain.", extra={"type": "narrator"}),
    )
    assert transcript.chat == {"characters": [{"name": "Quill"}, {"name": "Bishop"}]}


def test_a_narrator_message_has_the_role_narrator() -> None:
    (message,) = read(HEADER, says("System", "Rain.", extra={"type": "narrator", "isSmallSys": True})).messages
    assert message["role"] == "narrator"


def test_a_hidden_message_is_read_and_listed() -> None:
    transcript = read(
        HEADER,
        says("Nell", "Hello?", is_system=True),
        says("Quill", "Late."),
        says("System", "Rain.", is_system=True, extra={"type": "narrator"}),
        says("Quill", "", is_system=True),
    )
    assert [message["role"] for message in transcript.messages] == ["user", "assistant", "narrator"]
    assert transcript.hidden == ["st-000002", "st-000004"]
    assert transcript.skipped == 1


@pytest.mark.parametrize(
    "page",
    [
        says("Note", "Mind the key.", is_system=True, extra={"type": "comment"}),
        says("Note", "Mind the key.", extra={"type": "comment"}),
        says("SillyTavern System", "Welcome!", is_system=True, extra={"type": "welcome"}),
        says("Quill", "Tool calls: []", is_system=True, extra={"tool_invocations": []}),
        says("Quill", ""),
    ],
)
def test_messages_outside_the_story_are_skipped_and_counted(page: dict[str, Any]) -> None:
    transcript = read(HEADER, page, says("Nell", "Hello?"))
    assert len(transcript.messages) == 1
    assert (transcript.skipped, transcript.hidden) == (1, [])


@pytest.mark.parametrize(
    ("swiped", "swipes", "selected"),
    [
        ({"mes": "Late.", "swipes": ["Early.", "Late."], "swipe_id": 1}, ["Early.", "Late."], 1),
        ({"mes": "Late.", "swipes": ["Early."], "swipe_id": 7}, ["Early.", "Late."], 1),
        ({"mes": "Late.", "swipes": ["Late.", "Early."], "swipe_id": 7}, ["Late.", "Early."], 0),
        ({"mes": "Late.", "swipes": None, "swipe_id": [0]}, None, None),
        ({"mes": "Late.", "swipes": ["Late."], "swipe_id": 0}, None, None),
        ({"mes": "", "swipes": ["Early.", "Late."], "swipe_id": 1}, ["Early.", "Late."], 1),
        ({"swipes": ["Late.", "Early."]}, ["Late.", "Early."], 0),
        ({"mes": "Late.", "swipes": ["", "Early.", "Lat"], "swipe_id": 2}, ["Early.", "Late."], 1),
        ({"mes": "Late.", "swipes": ["Late.", "Late."], "swipe_id": 1}, ["Late.", "Late."], 1),
    ],
)
def test_all_swipes_are_read_with_the_selected_one(
    swiped: dict[str, Any], swipes: list[str] | None, selected: int | None
) -> None:
    (message,) = read(HEADER, {"name": "Quill", "is_user": False} | swiped).messages
    assert message["content"] == "Late."
    assert (message.get("swipes"), message.get("selected_swipe")) == (swipes, selected)


def test_a_time_that_cannot_be_read_is_left_out() -> None:
    (message,) = read(HEADER, says("Nell", "Hello?", send_date="yesterday")).messages
    assert "sent_at" not in message


def test_an_empty_name_is_none() -> None:
    transcript = read(HEADER, says("", "Late."), says("Nell", "Hello?"))
    assert [message.get("name") for message in transcript.messages] == [None, "Nell"]
    assert transcript.chat == {}


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"name": "Nell", "is_user": True}, "mes: missing"),
        ({"name": "Nell", "is_user": True, "mes": 7}, "mes: must be a string"),
        ({"name": "Nell", "is_user": True, "swipes": [], "swipe_id": -1}, "mes: missing"),
        (says("Nell", "x" * 100_001), "content: must have at most 100000 characters"),
        (says("Nell", "Hello?\0"), "content: must not contain NUL characters"),
        (says("Quill", "Late.", swipes=["Late.", 7]), "swipes.1: must be a valid string"),
        (says("Nell", "Hello?") | {"name": 7}, "name: must be a valid string"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(bad: dict[str, Any], problem: str) -> None:
    with pytest.raises(TranscriptError, match=f"^line 3: {problem}$"):
        read(HEADER, says("Nell", "Hello?"), bad)
